// Layouts made from one layout: parts, reorderings, other element sizes, fewer axes.
// Each is exact: the result is the map that its law says, or the question is refused.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "helve/layout/fuse_axes.h"
#include "helve/layout/layout.h"

namespace helve {

/// One (begin, end) for each dimension, end excluded.
using IndexRegion = std::vector<std::pair<int64_t, int64_t>>;

/// The layout of a region: over the extents end - begin, coordinate t has the points of begin + t in `shape`. Replicas
/// and swizzle stay, the offset moves. Complete: refused (UnsupportedError, with the coordinate in the region that no
/// layout reaches) only where no layout with that swizzle has that map, or where a region of more than
/// kLayoutStepLimit elements would have to be listed. Throws ShapeError, and BoundsError for an empty dimension or one
/// outside the shape.
Layout slice(const Layout& layout, const IndexRegion& region, const std::vector<int64_t>& shape);

/// The layout with the dimensions of `shape` in another order: dimension d of the result is dimension order[d].
/// Throws ShapeError, DivisibilityError.
Layout permute(const Layout& layout, const std::vector<int64_t>& shape, const std::vector<int64_t>& order);

/// The layout of packs of `factor` neighbouring elements, in units of packs on `m`: P(x) = L(factor * x) / factor,
/// where L(factor * x + j) = factor * P(x) + j. Throws DivisibilityError where that is no layout, BoundsError for a
/// factor below 1, UnsupportedError where the swizzle would divide a pack.
Layout pack(const Layout& layout, int64_t factor);

/// The layout of the `factor` parts of each element, neighbours on `m`: U(factor * x + j) = factor * L(x) + j. The
/// inverse of `pack`. Throws BoundsError for a factor below 1, UnsupportedError for a swizzle and a factor that is no
/// power of two.
Layout unpack(const Layout& layout, int64_t factor);

/// The layout on `axes` only. Digits of other axes leave the domain, which shrinks to the kept iters; replicas and
/// offsets of other axes go, and the swizzle goes with `m`.
Layout project(const Layout& layout, const std::vector<Axis>& axes);

/// The layout inside one executor's memory: `project` on the memory axes.
Layout storage(const Layout& layout);

}  // namespace helve
