// The Axe layout: where every element lives, on all axes at once.
// L = (D, R, O) maps a flat logical index x to the points { D(x) + r + O : r in R } (Axe, arXiv 2601.19092), followed
// by a swizzle of the memory axis. All questions are answered with exact integers, or refused.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "helve/layout/axis.h"
#include "helve/layout/layout_error.h"
#include "helve/layout/point.h"
#include "helve/support/inline_vector.h"

namespace helve {

/// `extent` steps of `stride` along `axis`. Strides may be negative or 0.
struct Iter {
  int64_t extent = 1;
  int64_t stride = 1;
  Axis axis = {};

  bool operator==(const Iter&) const = default;
};

/// A list of iters.
using Iters = InlineVector<Iter, 6>;

/// XORs `bits` bits of an address, at bit `base`, with those `shift` above (below when negative), as CuTe's
/// Swizzle<B, M, S>. It is its own inverse and permutes every block of `period()` addresses within itself.
struct Swizzle {
  int bits = 0;   ///< B; 0 is the identity
  int base = 0;   ///< M, the low bits that stay together
  int shift = 0;  ///< S, |S| >= B

  int64_t apply(int64_t address) const;
  /// 2^(B + M + |S|); 1 for the identity.
  int64_t period() const;
  bool identity() const { return bits == 0; }
  bool operator==(const Swizzle&) const = default;
};

struct GroupedLayout;
struct GroupedMany;

/// An immutable Axe layout.
///
/// The domain is [0, size()): indices are flattened row-major, the last shard iter is the fastest. A layout has no
/// rank; every shape with size() elements is admitted.
///
/// A shard iter of stride 0 is legal: indices that differ only in its digit share their points, so the layout is a map
/// but not an injective one. A replica is the other thing: one index with several points. A replica of stride 0 adds
/// nothing. The shard may be empty: one element. An offset may name an axis with 0.
///
/// Every value of the map, of its spans and sizes fits in 64 bits: a layout where one does not is refused when it is
/// made.
class Layout {
 public:
  /// One element at the origin.
  Layout() = default;
  /// Throws ShapeError for an extent below 1, UnsupportedError for values beyond 64 bits or an impossible swizzle.
  explicit Layout(const Iters& shard, const Iters& replica = {}, const Point& offset = {}, const Swizzle& swizzle = {});

  const Iters& shard() const { return shard_; }
  const Iters& replica() const { return replica_; }
  const Point& offset() const { return offset_; }
  const Swizzle& swizzle() const { return swizzle_; }
  /// Every axis that shard, replica or offset mention, in order.
  const Axes& axes() const { return axes_; }
  /// The offset along `axis`, 0 when it is not mentioned.
  int64_t offset(Axis axis) const { return offset_.at(axis); }

  /// The number of logical indices.
  int64_t size() const { return size_; }
  /// The product of the extents of the shard iters on `axis`.
  int64_t size(Axis axis) const;
  /// max - min + 1 of the image's coordinates on `axis` (of the swizzled ones on `m`); 1 for an axis not used.
  int64_t span(Axis axis) const;

  /// Every point of an index, sorted and without duplicates; each names all of axes().
  /// Throws BoundsError outside the domain, UnsupportedError for more replicas than the limit of steps.
  Points apply(int64_t index) const;
  /// The same for a coordinate in `shape`. Throws ShapeError too, when the shape is not admitted.
  Points apply(const std::vector<int64_t>& coordinate, const std::vector<int64_t>& shape) const;

  /// The index that has `point` among its points; none outside the image.
  /// Throws InjectivityError, with two indices that share a point, when the layout is not injective.
  std::optional<int64_t> inverse(const Point& point) const;
  std::optional<std::vector<int64_t>> inverse(const Point& point, const std::vector<int64_t>& shape) const;

  /// Whether two different indices never share a point. Exact.
  bool is_injective() const;
  /// Two different indices and a point that they share; none when the layout is injective.
  struct Collision {
    int64_t first;
    int64_t second;
    Point point;
  };
  std::optional<Collision> find_collision() const;

  /// The canonical form, an equal map: shard without unit extents (D0) and with neighbours merged (D1), iters of stride
  /// 0 on `m`; replicas without unit extents or stride 0 (C0), with positive strides (C1), merged where one continues
  /// another (C2), sorted; offset without zeros; no swizzle where it moves nothing because all addresses lie below its
  /// source bits. The shard part is unique: equal maps have equal canonical shards.
  Layout canonicalize() const;

  /// Structural equality: same iters in the same order, same offset, same swizzle.
  friend bool operator==(const Layout& a, const Layout& b);
  /// Equality as maps. Exact, also where canonical forms of equal replica sets differ. Throws UnsupportedError when two
  /// different swizzles, or two replica sets without a unique form, are too large to list.
  bool equivalent(const Layout& other) const;
  uint64_t hash() const;

  /// An equal layout whose shard is cut into one block of iters for each dimension of `shape`, with as few iters as
  /// possible (none for an extent of 1). Throws ShapeError when the shape is not admitted, DivisibilityError when an
  /// iter would be cut off a divisor; then no equal layout has that grouping.
  GroupedLayout group(const std::vector<int64_t>& shape) const;
  /// The same for several shapes at once: the coarsest shard that groups by each of them.
  GroupedMany group_many(const std::vector<std::vector<int64_t>>& shapes) const;

 private:
  /// Makes `result`, whose shard is an equal one of this layout's, equal to this layout: what fits in 64 bits here fits
  /// there.
  void complete(Layout& result) const;
  /// Fills axes_ from the other members.
  void find_axes();
  /// The same, where nearly all axes are among `known`, sorted.
  void find_axes(const Axes& known);

  Iters shard_;
  Iters replica_;
  Point offset_;
  Axes axes_;
  Swizzle swizzle_;
  int64_t size_ = 1;
};

/// Where the blocks of a grouped shard begin.
using Separators = InlineVector<size_t, 8>;

/// A layout whose shard is cut into blocks: block d is iters [separators[d], separators[d + 1]).
struct GroupedLayout {
  Layout layout;
  Separators separators;  ///< rank + 1 entries, from 0 to the number of iters

  size_t rank() const { return separators.size() - 1; }
  /// The iters of dimension d, slowest first.
  Iters block(size_t d) const;
};

struct GroupedMany {
  Layout layout;
  std::vector<Separators> separators;  ///< one list for each shape
};

/// The Kronecker product: on the interleaved domain (outer_shape[0], inner_shape[0], outer_shape[1], ...), T(x, y) =
/// outer(x) * span(inner) + inner(y), axis by axis. The outer's replicas and offset are scaled as well. Throws
/// ShapeError, DivisibilityError; UnsupportedError when the outer is swizzled, or the inner is and its span on `m` is
/// no multiple of the swizzle's period.
Layout tile(const Layout& outer, const std::vector<int64_t>& outer_shape, const Layout& inner,
            const std::vector<int64_t>& inner_shape);

/// The direct sum: on the interleaved domain, (x, y) goes to left(x) + right(y). Throws like `tile`, for any swizzle.
Layout direct_sum(const Layout& left, const std::vector<int64_t>& left_shape, const Layout& right,
                  const std::vector<int64_t>& right_shape);

/// The steps after which an exact question on an adversarial layout is refused with UnsupportedError.
inline constexpr int64_t kLayoutStepLimit = int64_t{1} << 22;

/// The row-major flat index of a coordinate. Throws ShapeError, BoundsError.
int64_t flatten(const std::vector<int64_t>& coordinate, const std::vector<int64_t>& shape);
/// The coordinate of a row-major flat index. Throws ShapeError, BoundsError.
std::vector<int64_t> unflatten(int64_t index, const std::vector<int64_t>& shape);

}  // namespace helve

template <>
struct std::hash<helve::Layout> {
  size_t operator()(const helve::Layout& layout) const noexcept { return static_cast<size_t>(layout.hash()); }
};
