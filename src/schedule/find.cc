// Finding statements as a user names them: by loop variable, by the buffer written, by text, by line.
// All kinds are one walk with a test of a statement.
#include "helve/schedule/find.h"

#include <algorithm>
#include <array>
#include <type_traits>

#include "helve/print/printer.h"

namespace helve {

namespace {

constexpr std::array<std::string_view, 5> kKinds{"loop", "store", "text", "line", "path"};

std::vector<std::string> loop_names(const Stmt& s) {
  std::vector<std::string> names;
  const auto add = [&](const std::vector<VarRef>& vars) {
    for (const VarRef& var : vars) names.push_back(var->name);
  };
  if (const For* n = as<For>(s)) add(n->vars);
  if (const ForTiles* n = as<ForTiles>(s)) add(n->vars);
  if (const Kernel* n = as<Kernel>(s)) add(n->vars);
  return names;
}

std::vector<std::string> written_names(const Stmt& s) {
  std::vector<std::string> names;
  if (const Store* n = as<Store>(s)) names.push_back(n->buffer->name);
  if (const TileStore* n = as<TileStore>(s)) names.push_back(n->buffer->name);
  if (const TileOp* n = as<TileOp>(s)) {
    for (size_t i = 0; i < n->operands.size(); ++i) {
      if (n->is_region(i) && n->row().params[i].writes()) names.push_back(n->region(i).buffer->name);
    }
  }
  return names;
}

/// Does `text` fit the pattern, in which `*` stands for any characters?
bool fits_pattern(std::string_view text, std::string_view pattern) {
  if (pattern.empty()) return text.empty();
  if (pattern[0] == '*') {
    return fits_pattern(text, pattern.substr(1)) || (!text.empty() && fits_pattern(text.substr(1), pattern));
  }
  return !text.empty() && text[0] == pattern[0] && fits_pattern(text.substr(1), pattern.substr(1));
}

std::string squeezed(std::string text) {
  std::erase(text, ' ');
  std::string out;
  for (const char c : text) {
    if (c != '*' || out.empty() || out.back() != '*') out += c;
  }
  return out;
}

bool fits(const Cursor& at, const Stmt& s, FinderKind kind, const std::string& name) {
  const auto has = [&](const std::vector<std::string>& names) {
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  switch (kind) {
    case FinderKind::Loop: return has(loop_names(s));
    case FinderKind::Store: return has(written_names(s));
    case FinderKind::Text: return fits_pattern(squeezed(head_text(s)), squeezed(name));
    case FinderKind::Line: return s->span.known() && std::to_string(s->span.line) == name;
    case FinderKind::Path: return to_string(at) == name;
  }
  __builtin_unreachable();
}

}  // namespace

std::string_view to_string(FinderKind kind) { return kKinds.at(static_cast<size_t>(kind)); }

std::optional<FinderKind> parse_finder_kind(std::string_view text) {
  const auto at = std::find(kKinds.begin(), kKinds.end(), text);
  if (at == kKinds.end()) return std::nullopt;
  return static_cast<FinderKind>(at - kKinds.begin());
}

std::string head_text(const Stmt& s) {
  const std::string text = print(s);
  return text.substr(0, text.find('\n'));
}

std::vector<Cursor> find_all(const Function& f, FinderKind kind, const std::string& name,
                             const std::optional<Cursor>& within) {
  std::vector<Cursor> out;
  walk_cursors(f, [&](const Cursor& at, const Stmt& s) {
    if (within && !(at.within(*within) && at != *within)) return;
    if (fits(at, s, kind, name)) out.push_back(at);
  });
  return out;
}

Finder finder_of(const Function& f, const Cursor& at) {
  const Stmt s = statement_at(f, at);
  const auto by = [&](FinderKind kind, const std::vector<std::string>& names) -> std::optional<Finder> {
    if (names.empty()) return std::nullopt;
    const std::vector<Cursor> all = find_all(f, kind, names[0]);
    const auto place = std::find(all.begin(), all.end(), at) - all.begin();
    return Finder{kind, names[0], all.size() == 1 ? kOnlyOne : static_cast<int64_t>(place)};
  };
  if (auto finder = by(FinderKind::Loop, loop_names(s))) return *finder;
  if (auto finder = by(FinderKind::Store, written_names(s))) return *finder;
  return {FinderKind::Path, to_string(at), kOnlyOne};
}

std::optional<Cursor> found(const Function& f, const Finder& finder) {
  const std::vector<Cursor> all = find_all(f, finder.kind, finder.name);
  if (finder.index == kOnlyOne) return all.size() == 1 ? std::optional(all[0]) : std::nullopt;
  if (finder.index < 0 || static_cast<size_t>(finder.index) >= all.size()) return std::nullopt;
  return all[static_cast<size_t>(finder.index)];
}

std::vector<std::string> names_of(const Function& f, FinderKind kind) {
  std::vector<std::string> out;
  walk_cursors(f, [&](const Cursor& at, const Stmt& s) {
    std::vector<std::string> names;
    if (kind == FinderKind::Loop) names = loop_names(s);
    if (kind == FinderKind::Store) names = written_names(s);
    if (kind == FinderKind::Text) names = {head_text(s)};
    if (kind == FinderKind::Line && s->span.known()) names = {std::to_string(s->span.line)};
    if (kind == FinderKind::Path) names = {to_string(at)};
    for (std::string& name : names) {
      if (std::find(out.begin(), out.end(), name) == out.end()) out.push_back(std::move(name));
    }
  });
  return out;
}

}  // namespace helve
