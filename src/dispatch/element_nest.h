// Loop nests over the elements of a region.
// All CPU schedules visit regions in the same order: tile by tile if the buffer is tiled, so that addresses stay
// affine.
#pragma once

#include <functional>
#include <vector>

#include "helve/dispatch/schedule_table.h"
#include "helve/ir/tensor/region.h"

namespace helve {

/// One dimension of a nest: `extent` elements, in blocks of `block` (1 or the whole: no blocks).
struct NestDim {
  Expr extent;
  int64_t block = 1;
};

/// A nest of Parallel loops over all dimensions, the last one innermost; the block loop of a dimension is directly
/// around its element loop, so that a row is traversed through all its tiles before the next. `body` gets one
/// coordinate per dimension, counted from 0.
Stmt element_nest(const std::vector<NestDim>& dims, const std::function<Stmt(const std::vector<Expr>&)>& body);

/// The dimensions of a region's nest: blocked by the buffer's tile if the region begins at a tile.
std::vector<NestDim> nest_dims(const Region& region, const std::vector<Expr>& extents);

}  // namespace helve
