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

/// The first element of a region that is not empty.
std::vector<Expr> region_begin(const Region& region);

/// The subscripts of element `number`, in row-major order, of a box with these extents.
std::vector<Expr> unravel(const Expr& number, const std::vector<Expr>& extents);

}  // namespace helve
