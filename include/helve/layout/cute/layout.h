// The CuTe layout: a nested shape and congruent strides, a function from coordinates to offsets.
// Coordinates are colexicographic, the left mode is the fastest (NVIDIA/cutlass, media/docs/cpp/cute): the digit order
// of `helve::Layout` reversed.
#pragma once

#include <optional>

#include "helve/layout/cute/int_tuple.h"

namespace helve::cute {

/// One leaf of a layout: `extent` steps of `stride`.
struct Mode {
  int64_t extent = 1;
  int64_t stride = 0;

  bool operator==(const Mode&) const = default;
};

using ModeTree = Tree<Mode>;
using ModeCursor = Cursor<Mode>;
using Modes = InlineVector<Mode, 6>;

/// An immutable layout. Extents are 1 or more; strides may be negative or 0. The size and every offset of the domain
/// fit in 64 bits: a layout where one does not is refused when it is made.
///
/// An index past the size, or below 0, continues the last leaf: the other digits are floor remainders. So a layout is a
/// function of all integers, and composition asks for its values there.
class Layout {
 public:
  /// 1:0.
  Layout() : Layout(1, 0) {}
  Layout(int64_t extent, int64_t stride) : Layout(ModeTree(Mode{extent, stride})) {}
  /// Compact, left fastest. Throws BoundsError for an extent below 1, UnsupportedError beyond 64 bits.
  explicit Layout(const IntTuple& shape);
  /// Throws ShapeError too, unless the two are congruent.
  Layout(const IntTuple& shape, const IntTuple& stride);
  explicit Layout(const ModeTree& tree) : tree_(tree) { admit(); }
  explicit Layout(ModeTree&& tree) : tree_(std::move(tree)) { admit(); }
  /// The modes in one level; one mode alone as it is, 1:0 for none.
  Layout(const Mode* first, const Mode* last);

  const ModeTree& tree() const { return tree_; }
  const Modes& modes() const { return tree_.leaves; }
  ModeCursor root() const { return tree_.root(); }
  IntTuple shape() const;
  IntTuple stride() const;

  int64_t size() const { return size_; }
  /// 1 + the sum of (extent - 1) * |stride|: the span of the offsets.
  int64_t cosize() const { return cosize_; }
  size_t rank() const { return tree_.rank(); }
  size_t depth() const { return cute::depth(tree_.profile); }
  bool is_leaf() const { return tree_.is_leaf(); }
  /// Mode i of the top level; a layout of one leaf is its own mode 0. Throws BoundsError.
  Layout mode(size_t i) const;
  /// The mode at a path: mode i, therein mode j, ...
  Layout mode(const std::vector<size_t>& path) const;

  /// The offset of an index, which may be any integer. Throws UnsupportedError beyond 64 bits.
  int64_t operator()(int64_t index) const;
  /// The offset of a coordinate; kAll counts as 0. Throws like crd2idx.
  int64_t operator()(const IntTuple& coordinate) const;

  friend bool operator==(const Layout& a, const Layout& b) { return a.tree_ == b.tree_; }
  uint64_t hash() const;

 private:
  /// Sets the size and the cosize. Throws what the constructors throw.
  void admit();

  ModeTree tree_;
  int64_t size_;
  int64_t cosize_;
};

/// "(4,(2,3)):(1,(4,8))".
std::string to_string(const Layout& layout);
/// The layout that `text` spells; "(4)" is a tuple of one entry, "4" has the compact strides. Throws LayoutError.
Layout parse(std::string_view text);

/// Two indices with one offset.
struct Collision {
  int64_t first;
  int64_t second;
  int64_t offset;
};
/// Exact; throws UnsupportedError for an adversarial layout that needs more than kLayoutStepLimit steps.
std::optional<Collision> find_collision(const Layout& layout);

/// The modes side by side. Throws ShapeError for none.
Layout make_layout(const Layout* first, const Layout* last);
inline Layout make_layout(std::initializer_list<Layout> layouts) { return make_layout(layouts.begin(), layouts.end()); }
inline Layout make_layout(const std::vector<Layout>& layouts) {
  return make_layout(layouts.data(), layouts.data() + layouts.size());
}
/// Compact, right fastest.
Layout make_right_layout(const IntTuple& shape);
/// Compact, in the order of `order` (weakly congruent to the shape; smaller is faster; below a leaf of it, left is
/// fastest). Throws ShapeError; InjectivityError when two entries of extents above 1 have the same order.
Layout make_ordered_layout(const IntTuple& shape, const IntTuple& order);
/// Compact with the shape and the order of the strides of `layout`, of equal ones the left first; stride 0 stays.
Layout make_layout_like(const Layout& layout);

/// The leaves in one level.
Layout flatten(const Layout& layout);
/// The leaves in the structure of `profile`. Throws ShapeError unless it has as many leaves.
Layout unflatten(const Layout& layout, const IntTuple& profile);
/// Modes [begin, end) as one. Throws BoundsError.
Layout group(const Layout& layout, size_t begin, size_t end);
/// Modes [begin, end). Throws BoundsError.
Layout take(const Layout& layout, size_t begin, size_t end);
/// The modes with these numbers. Throws BoundsError, ShapeError for none.
Layout select(const Layout& layout, const std::vector<size_t>& modes);
/// With `mode` at the right (left) end, up to `rank` modes. Throws BoundsError when there are more already.
Layout append(const Layout& layout, size_t rank, const Layout& mode = Layout());
Layout prepend(const Layout& layout, size_t rank, const Layout& mode = Layout());
/// With mode i replaced. Throws BoundsError.
Layout replace(const Layout& layout, size_t i, const Layout& mode);

/// The modes at kAll, as one layout (`layout` itself when the coordinate is kAll alone). Throws ShapeError when the
/// coordinate is not weakly congruent to the shape or keeps nothing, BoundsError outside the shape.
Layout slice(const IntTuple& coordinate, const Layout& layout);
/// The modes that are not at kAll.
Layout dice(const IntTuple& coordinate, const Layout& layout);
/// The slice and the offset of the fixed entries.
std::pair<Layout, int64_t> slice_and_offset(const IntTuple& coordinate, const Layout& layout);

/// The table of a layout of rank 2, as CuTe prints it: the layout, then a row of cells for each row.
std::string print_layout(const Layout& layout);

}  // namespace helve::cute

template <>
struct std::hash<helve::cute::Layout> {
  size_t operator()(const helve::cute::Layout& layout) const noexcept { return static_cast<size_t>(layout.hash()); }
};
