// Layouts as linear maps over bits.
// Where extents are powers of two, a layout and its swizzle are one matrix over F2 (Linear Layouts, arXiv 2505.23819):
// composition, inverse and other compilers' layouts are then matrix algebra.
#pragma once

#include <map>
#include <vector>

#include "helve/layout/layout.h"

namespace helve {

/// The points of index x are the XOR, axis by axis, of `offset`, of `index[k]` over the bits k of x, and of any subset
/// of `replica`. Bit 0 is the lowest. Coordinates are not negative.
struct LinearLayout {
  std::vector<Point> index;
  std::vector<Point> replica;
  Point offset;

  bool operator==(const LinearLayout&) const = default;
};

/// The bits of a layout; exact. Throws UnsupportedError unless the layout is linear: extents are powers of two, and on
/// each axis no two bits of digits, replicas and offset share a bit before the swizzle, so that sums do not carry. Unit
/// extents and replicas of stride 0 play no part.
LinearLayout to_linear(const Layout& layout);

/// The layout with these bits, swizzled where it must be. Throws UnsupportedError unless every bit moves along one axis
/// and, for one swizzle at most, no two bits share a bit; all swizzles are tried, fewest bits first.
Layout from_linear(const LinearLayout& linear);

/// The other direction, as Triton states layouts: for each axis and each bit of its coordinate, the logical coordinate
/// that it contributes, one entry a dimension; a bit of zeros is a replica.
using LinearBases = std::map<Axis, std::vector<std::vector<int64_t>>>;

/// Throws like to_linear; UnsupportedError too for an offset, for places without an element and for two elements at one
/// place: then there is no such map; and for an extent of the shape that is no power of two. ShapeError when the shape
/// is not admitted.
LinearBases to_bases(const Layout& layout, const std::vector<int64_t>& shape);

/// The layout over `shape` whose elements lie where the bases say. Places that hold equal elements become replicas.
/// Throws ShapeError for bases of another rank, BoundsError for those outside the shape, UnsupportedError where an
/// element has no place and for an extent of the shape that is no power of two, and like from_linear.
Layout from_bases(const LinearBases& bases, const std::vector<int64_t>& shape);

}  // namespace helve
