// Elements of a region.
// Whoever turns an operation on regions into loops addresses them the same way.
#pragma once

#include <vector>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// a + b, without additions of a constant 0.
Expr plus(const Expr& a, const Expr& b);

/// The element of a region at `coords` (one for each dimension that is no point).
std::vector<Expr> region_indices(const Region& region, const std::vector<Expr>& coords);

}  // namespace helve
