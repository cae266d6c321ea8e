// The layout as a value: checked construction, evaluation, and the layouts that come from a shape alone.
// Everything the constructor promises (extents, 64 bits) is checked here once, so that the algebra need not.
#include "helve/layout/cute/layout.h"

#include <numeric>

#include "checked.h"
#include "helve/layout/layout.h"
#include "helve/support/hash.h"
#include "structure.h"

namespace helve::cute {

namespace {

Wide absolute(int64_t value) { return value < 0 ? -Wide{value} : Wide{value}; }

ModeTree zipped(const IntTuple& shape, const IntTuple& stride) {
  if (!congruent(shape, stride)) refuse_profile("Layout", stride.root(), shape.root());
  ModeTree tree;
  tree.profile = shape.profile;
  tree.leaves.reserve(shape.leaves.size());
  for (size_t k = 0; k < shape.leaves.size(); ++k) tree.leaves.push_back({shape.leaves[k], stride.leaves[k]});
  return tree;
}

ModeTree compact(const IntTuple& shape) {
  check_extents(shape.root());
  return zipped(shape, prefix_product(shape));
}

template <class Take>
IntTuple leaves_of(const ModeTree& tree, Take&& take) {
  IntTuple result;
  result.profile = tree.profile;
  result.leaves.reserve(tree.leaves.size());
  for (const Mode& mode : tree.leaves) result.leaves.push_back(take(mode));
  return result;
}

}  // namespace

void Layout::admit() {
  int64_t size = 1;
  int64_t span = 1;
  for (const Mode& mode : tree_.leaves) {
    if (mode.extent < 1) [[unlikely]] {
      throw_layout_error(Code::CuteExtent, {{"shape", to_string(shape())}, {"extent", mode.extent}});
    }
    if (__builtin_mul_overflow(size, mode.extent, &size)) [[unlikely]]
      refuse_overflow("the size of a layout");
    int64_t reach = 0;
    bool overflows = __builtin_mul_overflow(mode.extent - 1, mode.stride, &reach);
    overflows |= reach < 0 ? __builtin_sub_overflow(span, reach, &span) : __builtin_add_overflow(span, reach, &span);
    if (overflows) [[unlikely]]
      refuse_overflow("the cosize of a layout");
  }
  if (tree_.profile.size() > kMaxDepth && depth() > kMaxDepth) [[unlikely]]
    refuse_depth();
  size_ = size;
  cosize_ = span;
}

Layout::Layout(const Mode* first, const Mode* last) {
  const auto count = static_cast<size_t>(last - first);
  if (count > 1) {
    check_entries(count);
    tree_.profile.push_back(static_cast<uint16_t>(count));
  }
  for (; first != last; ++first) tree_.append_leaf(*first);
  if (count == 0) tree_.append_leaf({1, 0});
  admit();
}

Layout::Layout(const IntTuple& shape) : Layout(compact(shape)) {}

Layout::Layout(const IntTuple& shape, const IntTuple& stride) : Layout(zipped(shape, stride)) {}

IntTuple Layout::shape() const {
  return leaves_of(tree_, [](const Mode& mode) { return mode.extent; });
}

IntTuple Layout::stride() const {
  return leaves_of(tree_, [](const Mode& mode) { return mode.stride; });
}

int64_t Layout::operator()(int64_t index) const {
  Wide sum = 0;
  const Mode* mode = modes().begin();
  for (const Mode* last = modes().end() - 1; mode != last; ++mode) {
    sum += Wide{floor_modulo(index, mode->extent)} * mode->stride;
    index = floor_divide(index, mode->extent);
  }
  return narrow(sum + Wide{index} * mode->stride, "an offset");
}

int64_t Layout::operator()(const IntTuple& coordinate) const {
  if (coordinate.is_leaf()) return (*this)(coordinate.leaves[0] == kAll ? 0 : coordinate.leaves[0]);
  return crd2idx(coordinate, shape(), stride());
}

uint64_t Layout::hash() const {
  uint64_t seed = tree_.profile.size();
  for (uint16_t token : tree_.profile) seed = hash_mix(seed, token);
  for (const Mode& mode : modes()) {
    seed = hash_mix(hash_mix(seed, static_cast<uint64_t>(mode.extent)), static_cast<uint64_t>(mode.stride));
  }
  return seed;
}

std::optional<Collision> find_collision(const Layout& layout) {
  Modes sorted;
  int64_t prefix = 1;
  for (const Mode& mode : layout.modes()) {
    if (mode.extent > 1 && mode.stride == 0) return Collision{0, prefix, 0};
    prefix *= mode.extent;
    if (mode.extent > 1) sorted.push_back(mode);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const Mode& a, const Mode& b) { return absolute(a.stride) < absolute(b.stride); });
  Wide span = 0;
  bool nested = true;
  for (const Mode& mode : sorted) {
    nested = nested && absolute(mode.stride) > span;
    span += (mode.extent - 1) * absolute(mode.stride);
  }
  if (nested) return std::nullopt;
  Iters iters;  // the slowest first: the digits reversed give the same indices
  for (size_t k = layout.modes().size(); k-- > 0;) {
    iters.push_back({layout.modes()[k].extent, layout.modes()[k].stride, axes::m()});
  }
  auto found = helve::Layout(std::move(iters)).find_collision();
  if (!found) return std::nullopt;
  int64_t first = std::min(found->first, found->second);
  return Collision{first, std::max(found->first, found->second), layout(first)};
}

Layout make_right_layout(const IntTuple& shape) {
  check_extents(shape.root());
  IntTuple stride = shape;
  Wide current = 1;
  for (size_t k = shape.leaves.size(); k-- > 0;) {
    stride.leaves[k] = narrow(current, "a stride");
    current *= shape.leaves[k];
  }
  return Layout(shape, stride);
}

namespace {

/// A part of a shape that is compact in itself: the leaves [begin, end), and its place.
struct OrderedPart {
  int64_t place;
  size_t entry;
  size_t begin;
  size_t end;
  int64_t size;
};

void collect_parts(IntCursor order, IntCursor shape, const int64_t* base, std::vector<OrderedPart>& parts,
                   const IntTuple& whole_order, const IntTuple& whole_shape) {
  if (order.is_leaf()) {
    parts.push_back({*order.leaves, parts.size(), static_cast<size_t>(shape.leaves - base),
                     static_cast<size_t>(shape.next().leaves - base), product(shape)});
    return;
  }
  if (shape.is_leaf() || shape.rank() != order.rank()) {
    refuse_profile("make_ordered_layout", whole_order.root(), whole_shape.root());
  }
  size_t rank = order.rank();
  order = order.front();
  shape = shape.front();
  for (size_t i = 0; i < rank; ++i, order = order.next(), shape = shape.next()) {
    collect_parts(order, shape, base, parts, whole_order, whole_shape);
  }
}

}  // namespace

Layout make_ordered_layout(const IntTuple& shape, const IntTuple& order) {
  check_extents(shape.root());
  std::vector<OrderedPart> parts;
  collect_parts(order.root(), shape.root(), shape.leaves.data(), parts, order, shape);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const OrderedPart& a, const OrderedPart& b) { return a.place < b.place; });
  IntTuple stride = shape;
  Wide current = 1;
  const OrderedPart* before = nullptr;
  for (const OrderedPart& part : parts) {
    if (part.size > 1) {
      if (before != nullptr && before->place == part.place) {
        throw_layout_error(Code::CuteOrderTie, {{"order", to_string(order)},
                                                {"first", static_cast<int64_t>(before->entry)},
                                                {"second", static_cast<int64_t>(part.entry)},
                                                {"shape", to_string(shape)}});
      }
      before = &part;
    }
    for (size_t k = part.begin; k < part.end; ++k) {
      stride.leaves[k] = narrow(current, "a stride");
      current *= shape.leaves[k];
    }
  }
  return Layout(shape, stride);
}

Layout make_layout_like(const Layout& layout) {
  const Modes& modes = layout.modes();
  std::vector<size_t> order(modes.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return absolute(modes[a].stride) < absolute(modes[b].stride); });
  ModeTree tree = layout.tree();
  int64_t current = 1;
  for (size_t k : order) {
    if (modes[k].stride == 0) continue;
    tree.leaves[k].stride = current;
    current *= modes[k].extent;
  }
  return Layout(std::move(tree));
}

IntTuple idx2crd(const IntTuple& index, const IntTuple& shape, const IntTuple& stride) {
  Layout layout(shape, stride);
  Modes sorted;
  for (const Mode& mode : layout.modes()) {
    if (mode.extent > 1) sorted.push_back(mode);
  }
  std::sort(sorted.begin(), sorted.end(), [](const Mode& a, const Mode& b) { return a.stride < b.stride; });
  int64_t current = 1;
  for (const Mode& mode : sorted) {
    if (mode.stride != current) break;
    current *= mode.extent;
  }
  if (current != layout.size()) {
    throw_layout_error(
        Code::CuteNotCompact,
        {{"operation", "idx2crd"}, {"layout", to_string(layout)}, {"offset", current}, {"size", layout.size()}});
  }
  if (!index.is_leaf()) return idx2crd(index, shape);
  int64_t offset = index.leaves[0];
  if (offset < 0 || offset >= layout.size()) {
    throw_layout_error(Code::CoordinateBounds, {{"coordinate", to_string(index)}, {"shape", to_string(shape)}});
  }
  IntTuple result = shape;
  for (size_t k = 0; k < shape.leaves.size(); ++k) {
    const Mode& mode = layout.modes()[k];
    result.leaves[k] = mode.extent == 1 ? 0 : offset / mode.stride % mode.extent;
  }
  return result;
}

}  // namespace helve::cute
