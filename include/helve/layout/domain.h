// Layouts of ordinary buffers, and a layout's address as terms.
// Passes turn the place of an element into scalar expressions; they need the digits of each dimension, not the algebra.
#pragma once

#include <cstdint>
#include <vector>

#include "helve/layout/layout.h"

namespace helve {

/// A layout with the domain that it covers: `domain[d] >= shape[d]`, the rest is padding.
struct Placement {
  std::vector<int64_t> domain;
  Layout layout;
};

/// Row-major on the memory axis. An extent 0 counts as 1: the domain of an empty tensor is all padding.
/// Throws ShapeError for a negative extent.
Placement row_major(const std::vector<int64_t>& shape);

/// Blocks of `tile`, row-major among each other and inside; the tile covers the last dimensions, those before it count
/// as outermost blocks. The domain is the shape rounded up to whole tiles (at least one). (128, 128) by (32, 32) gives
/// S[(4, 32, 4, 32) : (4096, 32, 1024, 1)]. Throws ShapeError for a negative extent, a tile extent below 1, or a tile
/// of higher rank.
Placement tiled(const std::vector<int64_t>& shape, const std::vector<int64_t>& tile);

/// One summand of a coordinate: ((index[dim] // divisor) % extent) * stride along `axis`.
struct AddressTerm {
  size_t dim;
  int64_t divisor;
  int64_t extent;
  int64_t stride;
  Axis axis;
  bool outermost;  ///< the slowest digit of its dimension: inside the domain the `%` changes nothing

  bool operator==(const AddressTerm&) const = default;
};

/// The terms of the shard over `domain`, dimension by dimension, slowest digit first; none of stride 0. The coordinate
/// of an element on an axis is the offset plus the sum of the axis's terms; on `m` the swizzle follows. Throws like
/// Layout::group.
std::vector<AddressTerm> address_terms(const Layout& layout, const std::vector<int64_t>& domain);

}  // namespace helve
