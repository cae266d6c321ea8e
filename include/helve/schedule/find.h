// Finding statements as a user names them: by loop variable, by the buffer written, by text, by line.
// A finder is what a trace keeps of a cursor, since paths differ between functions of one form.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "helve/schedule/cursor.h"

namespace helve {

/// What a statement is sought by.
enum class FinderKind {
  Loop,  ///< a loop or a grid with a variable of that name
  Store,  ///< a store or a tile operation that writes the buffer of that name
  Text,  ///< the first line of the statement as it is printed, `*` for any characters
  Line,  ///< a statement of that line of the source
  Path  ///< "body[0].body[2]"
};
/// "loop", "store", "text", "line", "path".
std::string_view to_string(FinderKind kind);
std::optional<FinderKind> parse_finder_kind(std::string_view text);

/// The second loop over i is {Loop, "i", 1}; with kOnlyOne there must be one such statement.
inline constexpr int64_t kOnlyOne = -1;
struct Finder {
  FinderKind kind = FinderKind::Path;
  std::string name;
  int64_t index = kOnlyOne;
  bool operator==(const Finder&) const = default;
};

/// All statements that the finder's kind and name fit, in program order; below `within` only, if it is given.
std::vector<Cursor> find_all(const Function& f, FinderKind kind, const std::string& name,
                             const std::optional<Cursor>& within = {});

/// The finder of a statement: by its variable or buffer if it has one, else by its path.
Finder finder_of(const Function& f, const Cursor& at);

/// The statement of a finder; nothing if there is none, or more than one where one is expected.
std::optional<Cursor> found(const Function& f, const Finder& finder);

/// The first line of a statement as it is printed.
std::string head_text(const Stmt& s);

/// What names of a kind there are, each once.
std::vector<std::string> names_of(const Function& f, FinderKind kind);

}  // namespace helve
