// The five edits of a function, and what each does to cursors.
// Every primitive of a schedule is composed of these, so that cursors into a program stay right without a line in any
// primitive.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "helve/schedule/cursor.h"

namespace helve {

/// `size` statements of a block, from `first` on.
struct Block {
  Cursor first;
  size_t size = 1;

  /// Is the place one of them, or below one?
  bool holds(const Cursor& at) const;
};

/// The statements of a block.
std::vector<Stmt> statements_of(const FunctionRef& f, const Block& block);

/// Where statements of the function before some edits are in the one after them.
class Forwarding {
 public:
  /// The cursor in the new function; nothing if its statement was deleted or replaced.
  std::optional<Cursor> operator()(const Cursor& at) const;
  /// As a place to put a statement, which exists wherever its block does: the end of a block, or what stands where a
  /// deleted one stood.
  std::optional<Cursor> gap(const Cursor& at) const;
  /// These edits and then `later`.
  Forwarding then(const Forwarding& later) const;

  enum class Kind { Insert, Delete, Replace, Revise, Wrap, Move };
  struct Row {
    Kind kind;
    Block block;  ///< in the old function; empty for Insert
    size_t size = 0;  ///< of what stands there after Insert and Replace
    std::string field;  ///< of the statement that wraps
    Cursor target{};  ///< of Move, in the old function
  };
  explicit Forwarding(std::vector<Row> rows = {}) : rows_(std::move(rows)) {}

 private:
  std::vector<Row> rows_;
};

struct Edited {
  FunctionRef function;
  Forwarding forward;

  /// The two edits as one; `later` is an edit of `function`.
  Edited then(const Edited& later) const { return {later.function, forward.then(later.forward)}; }
};

/// Puts statements before the place.
Edited insert(const FunctionRef& f, const Cursor& before, std::vector<Stmt> stmts);

/// Takes statements away.
Edited erase(const FunctionRef& f, const Block& block);

/// Puts other statements in their place; cursors to what was there are gone.
Edited replace(const FunctionRef& f, const Block& block, std::vector<Stmt> stmts);

/// Puts another form of a statement in its place: the statements below are as many, of the same kinds, at the same
/// places, and cursors to them stay.
Edited revise(const FunctionRef& f, const Cursor& at, Stmt stmt);

/// Puts statements into the field `field` of a new statement, which `around` makes of them.
Edited wrap(const FunctionRef& f, const Block& block, const std::string& field,
            const std::function<Stmt(Stmt)>& around);

/// Takes statements away and puts them before `target`, a place of the old function outside of them.
Edited move(const FunctionRef& f, const Block& block, const Cursor& target);

/// Have the two the same kinds of statements at the same places?
bool same_form(const Stmt& a, const Stmt& b);

}  // namespace helve
