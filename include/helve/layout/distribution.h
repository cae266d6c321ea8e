// Tensors spread over a mesh, in DISTAL's notation.
// "xy -> x y *" is a set-valued map from elements to devices (DISTAL, arXiv 2203.08069, tensor distribution notation),
// and that is a layout on device axes: a variable is a shard iter, '*' a replica, a number an offset.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "helve/layout/layout.h"

namespace helve {

/// One dimension of a mesh.
struct MeshAxis {
  Axis axis;
  int64_t extent;

  bool operator==(const MeshAxis&) const = default;
};

/// How the terms that devices hold make the tensor.
enum class PartialOp : int { Sum, Prod, Max, Min };
/// "sum", "prod", "max", "min".
std::string_view to_string(PartialOp op);

/// An axis over which the tensor is yet to be reduced.
struct Partial {
  Axis axis;
  PartialOp op = PartialOp::Sum;

  bool operator==(const Partial&) const = default;
};

/// Where the elements of a tensor live on a mesh.
///
/// A dimension of extent N that is cut over axes with P devices in all is cut into blocks of B = ceil(N / P), dealt
/// over the axes row-major; the last blocks may be short or empty. `domain` is P * B, at least 1 and at least the
/// shape; what lies outside the shape is padding. The layout covers the domain: device axes, then the address in the
/// own block, row-major, on `m`. Device axes of extent 1 are kept.
struct Distribution {
  std::vector<MeshAxis> mesh;
  std::vector<int64_t> shape;
  std::vector<int64_t> domain;
  std::vector<int64_t> block;  ///< the extents of every device's block
  std::vector<std::vector<MeshAxis>> cut;  ///< the axes that cut each dimension, outer first
  Layout layout;
  std::vector<Partial> partial;  ///< axes over which the tensor is the sum (or another) of what devices hold

  /// Do all coordinates of the axis hold the same?
  bool holds_copies(Axis axis) const;
  /// The axis as one over which the tensor is yet to be reduced; null if it is none.
  const Partial* partial_over(Axis axis) const;

  /// The first element of a device's block and the extents of what it holds of the shape, 0 where it holds nothing of a
  /// dimension. None for a device that holds nothing because of an offset. Throws ShapeRank, CoordinateBounds.
  struct Part {
    std::vector<int64_t> begin;
    std::vector<int64_t> extents;
  };
  std::optional<Part> part(const std::vector<int64_t>& device) const;
};

/// A distribution by what every axis of the mesh does: those in `cut` cut a dimension each, outer first, those in
/// `fixed` have one coordinate that holds the data, those in `partial` hold terms, and the others hold copies. Throws
/// ShapeError for a negative extent.
Distribution make_distribution(const std::vector<int64_t>& shape, const std::vector<MeshAxis>& mesh,
                               const std::vector<std::vector<MeshAxis>>& cut, const Point& fixed,
                               const std::vector<Partial>& partial);

/// The distribution that `levels` describe, outer level first; each names the tensor's dimensions on the left of "->"
/// and, on the right, one entry for each of the next axes of the mesh: a dimension that is cut, '*' for copies, '+' for
/// terms of a sum, a number for the one coordinate that holds the data. Entries are characters ("xy -> xy*"), or words
/// between blanks ("row col -> row *"). "y:row" is an entry for the axis y, where it is not the next one. A dimension
/// may be cut once a level. Throws LayoutError; ShapeError for a negative extent.
Distribution distribute(const std::vector<std::string>& levels, const std::vector<int64_t>& shape,
                        const std::vector<MeshAxis>& mesh);

/// Levels that describe the distribution, as few as its notation has; dimensions are called i, j, k, ...
std::vector<std::string> notation_of(const Distribution& distribution);

/// The distribution whose layout is an equal map; its domain is the layout's. None if there is none: if the layout does
/// not deal ceil-sized blocks in order, or not all of the mesh. Axes of extent 1 that it does not name hold copies.
std::optional<Distribution> distribution_of(const Layout& layout, const std::vector<int64_t>& shape,
                                            const std::vector<MeshAxis>& mesh);

}  // namespace helve
