// Places in a function: paths over the declared fields of its statements.
// Fields are found by the declarations of the nodes, so a new kind of statement has cursors without a line here.
#include "helve/schedule/cursor.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <type_traits>

#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

Cursor Cursor::child(std::string field, size_t position) const {
  Cursor out = *this;
  out.steps.push_back({std::move(field), position});
  return out;
}

Cursor Cursor::parent() const {
  HELVE_CHECK(has_parent(), "the parent of a statement of the function's body");
  Cursor out = *this;
  out.steps.pop_back();
  return out;
}

Cursor Cursor::at(size_t position) const {
  Cursor out = *this;
  out.steps.back().position = position;
  return out;
}

bool Cursor::within(const Cursor& outer) const {
  return steps.size() >= outer.steps.size() && std::equal(outer.steps.begin(), outer.steps.end(), steps.begin());
}

Cursor Cursor::rebased(const Cursor& from, const Cursor& to) const {
  Cursor out = to;
  out.steps.insert(out.steps.end(), steps.begin() + static_cast<ptrdiff_t>(from.steps.size()), steps.end());
  return out;
}

bool Cursor::beside(const Cursor& other) const { return at(0) == other.at(0); }

std::string to_string(const Cursor& cursor) {
  std::string out;
  for (const CursorStep& step : cursor.steps) {
    out += fmt::format("{}{}[{}]", out.empty() ? "" : ".", step.field, step.position);
  }
  return out;
}

std::vector<Stmt> block_of(const Stmt& body) {
  if (!body) return {};
  if (const Seq* list = as<Seq>(body)) return list->stmts;
  return {body};
}

void for_each_block(const Stmt& s, const std::function<void(const std::string&, const Stmt&)>& f) {
  if (s->kind == StmtKind::Seq) return;
  dispatch(s, [&](const auto& node) {
    using N = std::decay_t<decltype(node)>;
    for_each_field<N>([&](const auto& each) {
      if constexpr (std::is_same_v<std::decay_t<decltype(node.*each.member)>, Stmt>) f(each.name, node.*each.member);
    });
  });
}

namespace {

/// The value of a field that holds statements; nothing if there is no such field.
std::optional<Stmt> field_of(const Stmt& s, const std::string& name) {
  std::optional<Stmt> found;
  for_each_block(s, [&](const std::string& field, const Stmt& body) {
    if (field == name) found = body;
  });
  return found;
}

Stmt with_field(const Stmt& s, const std::string& name, const std::function<Stmt(const Stmt&)>& change) {
  return dispatch(s, [&](const auto& node) -> Stmt {
    using N = std::decay_t<decltype(node)>;
    return Stmt(copy_with(node, [&](N& out) {
      for_each_field<N>([&](const auto& each) {
        if constexpr (std::is_same_v<std::decay_t<decltype(node.*each.member)>, Stmt>) {
          if (each.name == name) out.*each.member = change(out.*each.member);
        }
      });
    }));
  });
}

Stmt changed_body(const Stmt& body, const Cursor& at, size_t depth,
                  const std::function<void(std::vector<Stmt>&)>& change) {
  std::vector<Stmt> list = block_of(body);
  if (depth + 1 == at.steps.size()) {
    change(list);
    if (list.empty() && at.steps[depth].field == "else_body") return {};
  } else {
    Stmt& inner = list.at(at.steps[depth].position);
    inner = with_field(inner, at.steps[depth + 1].field,
                       [&](const Stmt& below) { return changed_body(below, at, depth + 1, change); });
  }
  return seq(std::move(list), as<Seq>(body) ? body->span : Span{});
}

void walk_block(const Stmt& body, const Cursor& first, const std::function<void(const Cursor&, const Stmt&)>& f) {
  const std::vector<Stmt> list = block_of(body);
  for (size_t i = 0; i < list.size(); ++i) walk_cursors(list[i], first.at(i), f);
}

}  // namespace

Stmt body_around(const Function& f, const Cursor& at) {
  Stmt body = at.steps.at(0).field == "body" ? f.body : Stmt();
  for (size_t depth = 1; depth < at.steps.size(); ++depth) {
    const std::vector<Stmt> list = block_of(body);
    const size_t position = at.steps[depth - 1].position;
    if (position >= list.size()) return {};
    body = field_of(list[position], at.steps[depth].field).value_or(Stmt());
  }
  return body;
}

Stmt statement_at(const Function& f, const Cursor& at) {
  const std::vector<Stmt> list = block_of(body_around(f, at));
  return at.position() < list.size() ? list[at.position()] : Stmt();
}

FunctionRef with_block(const FunctionRef& f, const Cursor& at, const std::function<void(std::vector<Stmt>&)>& change) {
  return with_body(f, changed_body(f->body, at, 0, change));
}

void walk_cursors(const Stmt& s, const Cursor& root, const std::function<void(const Cursor&, const Stmt&)>& f) {
  f(root, s);
  for_each_block(s, [&](const std::string& field, const Stmt& body) { walk_block(body, root.child(field, 0), f); });
}

void walk_cursors(const Function& function, const std::function<void(const Cursor&, const Stmt&)>& f) {
  walk_block(function.body, Cursor{{{"body", 0}}}, f);
}

}  // namespace helve
