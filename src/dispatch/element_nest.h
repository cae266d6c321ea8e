// Loop nests over the elements of a region.
// Every CPU schedule walks regions the same way: tile by tile where the buffer is tiled, so that addresses stay affine.
#pragma once

#include <functional>
#include <vector>

#include "helve/dispatch/schedule_table.h"
#include "helve/ir/tensor/region.h"

namespace helve {

/// One dimension of a nest: `extent` elements, walked in blocks of `block` (1 or the whole: no blocks).
struct NestDim {
  Expr extent;
  int64_t block = 1;
};

/// A nest of Parallel loops over all dimensions, the last one innermost; the block loop of a dimension stands directly
/// around its element loop, so that a row is walked through all its tiles before the next. `body` gets one coordinate a
/// dimension, counted from 0.
Stmt element_nest(const std::vector<NestDim>& dims, const std::function<Stmt(const std::vector<Expr>&)>& body);

/// The dimensions of a region's nest: blocked by the buffer's tile where the region begins at a tile's edge.
std::vector<NestDim> nest_dims(const Region& region, const std::vector<Expr>& extents);

}  // namespace helve
