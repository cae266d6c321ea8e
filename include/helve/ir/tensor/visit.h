// Traversal and rewriting of statements, derived from the field declarations.
// Passes handle single kinds of nodes; all others keep their identity.
#pragma once

#include <functional>
#include <unordered_map>

#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/function.h"

namespace helve {

/// Calls `on_expr` on each expression and `on_stmt` on each statement that is a direct part of `s` (regions included).
void for_each_part(const Stmt& s, const std::function<void(const Expr&)>& on_expr,
                   const std::function<void(const Stmt&)>& on_stmt);

/// Calls `f` on `s` and all statements below, parents first.
void walk(const Stmt& s, const std::function<void(const Stmt&)>& f);

/// Calls `f` on every expression node below `s`, sub-expressions included.
void walk_exprs(const Stmt& s, const std::function<void(const Expr&)>& f);

/// `s` with its direct parts mapped; `s` itself if nothing changed.
Stmt map_parts(const Stmt& s, const std::function<Expr(const Expr&)>& on_expr,
               const std::function<Stmt(const Stmt&)>& on_stmt);

/// Statements rewritten from the leaves up, expressions by `on_expr` (called on each whole expression).
Stmt rewrite(const Stmt& s, const std::function<Stmt(const Stmt&)>& on_stmt,
             const std::function<Expr(const Expr&)>& on_expr);
inline Stmt rewrite(const Stmt& s, const std::function<Stmt(const Stmt&)>& on_stmt) {
  return rewrite(s, on_stmt, [](const Expr& e) { return e; });
}

Stmt substitute(const Stmt& s, const Substitution& values);

using BufferMap = std::unordered_map<const Buffer*, BufferRef>;
/// Renames buffers in loads, stores, regions and tile loops (not in Alloc).
Stmt replace_buffers(const Stmt& s, const BufferMap& buffers);

/// The same for buffers that are allocated below `s`: their replacements are allocated instead.
Stmt redeclare_buffers(const Stmt& s, const BufferMap& buffers);

/// The function with another body.
FunctionRef with_body(const FunctionRef& f, Stmt body);

/// Is there a tile operation below `s` for which `holds`?
bool has_operation(const Stmt& s, const std::function<bool(const TileOp&)>& holds);

/// Does the statement hold, or is it, a loop that stays as it is (For::scheduled)?
bool has_scheduled_loop(const Stmt& s);

/// Does the statement hold a collective?
bool has_collective(const Stmt& s);

}  // namespace helve
