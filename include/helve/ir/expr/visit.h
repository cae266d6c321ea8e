// Traversal and rewriting of expressions, derived from the field declarations.
// A visitor overrides nothing and a mutator keeps identity where nothing changed, so unchanged IR is shared, not
// copied.
#pragma once

#include <functional>
#include <unordered_map>

#include "helve/ir/expr/expr.h"

namespace helve {

/// Calls `f` on each direct operand of `e`.
void for_each_child(const Expr& e, const std::function<void(const Expr&)>& f);

/// Calls `f` on `e` and every expression below it, parents first.
void walk(const Expr& e, const std::function<void(const Expr&)>& f);

/// `e` with each direct operand replaced by `f(operand)`; `e` itself when nothing changed. Types must not change.
Expr map_children(const Expr& e, const std::function<Expr(const Expr&)>& f);

/// `e` rewritten from the leaves up: `f` sees each node after its operands and may return it unchanged.
Expr rewrite(const Expr& e, const std::function<Expr(const Expr&)>& f);

using Substitution = std::unordered_map<const Var*, Expr>;
Expr substitute(const Expr& e, const Substitution& values);

/// Does `var` occur in `e`?
bool mentions(const Expr& e, const Var* var);

/// Does `e` read a buffer? Then its value may differ between two places of a program.
bool has_load(const Expr& e);

}  // namespace helve
