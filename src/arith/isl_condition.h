// From a set of isl to the condition of its points.
// What isl computed becomes an expression again, so that a call can evaluate it without isl.
#pragma once

#include <isl/cpp.h>

#include <optional>
#include <vector>

#include "helve/ir/expr/expr.h"

namespace helve {

/// The condition under which a point of `within` lies in `set`, with dimension d of both read as `vars[d]`: sums,
/// products, // and % by constants, min, max, comparisons and connectives. Nothing when it takes more than `limit`
/// operators. A variable of a data type stands for its value as an integer.
std::optional<Expr> condition_of(const isl::set& set, const isl::set& within, const std::vector<VarRef>& vars,
                                 int limit);

/// The negation of such a condition, `not` on no connective or comparison.
Expr negated(const Expr& condition);

}  // namespace helve
