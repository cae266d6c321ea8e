// Places in a function: paths over the declared fields of its statements.
// A cursor names a statement by the way to it, since nodes are shared and rebuilt; edits (edit.h) carry cursors along.
#pragma once

#include <compare>
#include <functional>
#include <string>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

/// A field that holds statements ("body", "then_body", "else_body"), and which of them. A field is a block: the
/// statements of its sequence, one if it is no sequence, none if it is absent.
struct CursorStep {
  std::string field;
  size_t position = 0;
  auto operator<=>(const CursorStep&) const = default;
};

/// From the function inwards; never empty: the first step is into the function's body. Where a statement may be put,
/// the last position may also be the end of its block.
struct Cursor {
  std::vector<CursorStep> steps;

  auto operator<=>(const Cursor&) const = default;
  /// The place in field `field` of the statement.
  Cursor child(std::string field, size_t position) const;
  /// The statement around it; not of a statement of the function's body.
  Cursor parent() const;
  bool has_parent() const { return steps.size() > 1; }
  size_t position() const { return steps.back().position; }
  /// The same block at another position.
  Cursor at(size_t position) const;
  /// Is it `outer`, or a place below it?
  bool within(const Cursor& outer) const;
  /// The place below `to` that this one is below `from`, which holds it.
  Cursor rebased(const Cursor& from, const Cursor& to) const;
  /// Is it a place of the same block?
  bool beside(const Cursor& other) const;
};

/// "body[0].body[2]".
std::string to_string(const Cursor& cursor);

/// The statements of a field; `body` may be null.
std::vector<Stmt> block_of(const Stmt& body);

/// Calls `f` with the name and the value of each field of `s` that holds statements.
void for_each_block(const Stmt& s, const std::function<void(const std::string&, const Stmt&)>& f);

/// The statement at a place; null where there is none.
Stmt statement_at(const Function& f, const Cursor& at);

/// The field that holds the place, as a statement; null where there is no such field.
Stmt body_around(const Function& f, const Cursor& at);

/// The function with `change` applied to the block that holds the place.
FunctionRef with_block(const FunctionRef& f, const Cursor& at, const std::function<void(std::vector<Stmt>&)>& change);

/// Calls `f` on every statement below the body, sequences aside, parents first, in program order.
void walk_cursors(const Function& function, const std::function<void(const Cursor&, const Stmt&)>& f);
/// The same for the statement at `root` and all below it.
void walk_cursors(const Stmt& s, const Cursor& root, const std::function<void(const Cursor&, const Stmt&)>& f);

}  // namespace helve
