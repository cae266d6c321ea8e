// Walks of expressions whose variables may be results of reductions.
// What an expression uses includes what the reductions that it names use; all parts of the room ask it here.
#pragma once

#include <functional>
#include <vector>

#include "helve/ir/expr/visit.h"
#include "helve/notation/index_notation.h"

namespace helve::notation {

/// The reduction whose result is `var`, or null.
const Reduction* find_reduction(const std::vector<Reduction>& reductions, const Var* var);

/// The index with this variable, or null.
const Index* find_index(const std::vector<Index>& indices, const Var* var);

/// The extent of an index that has one.
const Expr& extent_of(const Extents& extents, const Index& index);

/// Calls `f` on `e` and all below it from left to right, in the place of results on the bodies of their reductions.
void walk_all(const Expr& e, const std::vector<Reduction>& reductions, const std::function<void(const Expr&)>& f);
inline void walk_all(const IndexExpr& expr, const std::function<void(const Expr&)>& f) {
  walk_all(expr.value, expr.reductions, f);
}

/// Those reductions that `e` uses, itself or inside of others; each after those that it uses.
std::vector<Reduction> reductions_used(const Expr& e, const std::vector<Reduction>& reductions);

/// Those of `indices` that `e` uses, in order of first use.
std::vector<Index> indices_used(const Expr& e, const std::vector<Reduction>& reductions,
                                const std::vector<Index>& indices);

}  // namespace helve::notation
