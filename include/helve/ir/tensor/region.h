// Elements of a region.
// All conversions of operations on regions to loops address elements by these functions.
#pragma once

#include <vector>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// a + b, without additions of a constant 0.
Expr plus(const Expr& a, const Expr& b);

/// The element of a region at `coords` (one for each dimension that is not a point).
std::vector<Expr> region_indices(const Region& region, const std::vector<Expr>& coords);

}  // namespace helve
