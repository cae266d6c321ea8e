// Kronecker product and direct sum.
// Tiling, sharding over threads and devices, and strided atoms are all one of these two.
#include "helve/layout/layout.h"
#include "integers.h"
#include "operands.h"

namespace helve {

namespace {

using layout_detail::checked_add;
using layout_detail::check_ranks;
using layout_detail::checked_multiply;
using layout_detail::refuse_swizzled;

/// The layout with every stride and offset multiplied by `factor` of its axis, without a swizzle.
template <class Factor>
Layout scale(const Layout& layout, Factor&& factor) {
  auto scaled = [&](std::vector<Iter> iters) {
    for (Iter& iter : iters) iter.stride = checked_multiply(iter.stride, factor(iter.axis), "a stride");
    return iters;
  };
  Point offset = layout.offset();
  for (auto& [axis, value] : offset) value = checked_multiply(value, factor(axis), "an offset");
  return Layout(scaled(layout.shard()), scaled(layout.replica()), std::move(offset));
}

/// The sum of two maps on the interleaved domain.
Layout interleave(const GroupedLayout& left, const GroupedLayout& right, const Swizzle& swizzle) {
  std::vector<Iter> shard;
  for (size_t d = 0; d < left.rank(); ++d) {
    for (const Iter& iter : left.block(d)) shard.push_back(iter);
    for (const Iter& iter : right.block(d)) shard.push_back(iter);
  }
  std::vector<Iter> replica = left.layout.replica();
  replica.insert(replica.end(), right.layout.replica().begin(), right.layout.replica().end());
  Point offset = left.layout.offset();
  for (const auto& [axis, value] : right.layout.offset()) offset[axis] = checked_add(offset[axis], value, "an offset");
  return Layout(std::move(shard), std::move(replica), std::move(offset), swizzle);
}

}  // namespace

Layout tile(const Layout& outer, const std::vector<int64_t>& outer_shape, const Layout& inner,
            const std::vector<int64_t>& inner_shape) {
  check_ranks("tile", outer_shape, inner_shape);
  refuse_swizzled("tile", "outer", outer);
  // Law: a swizzle commutes with adding multiples of its period.
  if (!inner.swizzle().identity() && inner.span(axes::m()) % inner.swizzle().period() != 0) {
    throw_layout_error(Code::SwizzlePeriod,
                       {{"span", inner.span(axes::m())}, {"period", inner.swizzle().period()}});
  }
  GroupedLayout right = inner.group(inner_shape);
  GroupedLayout left = outer.group(outer_shape);
  left.layout = scale(left.layout, [&](Axis axis) { return inner.span(axis); });
  return interleave(left, right, inner.swizzle());
}

Layout direct_sum(const Layout& left, const std::vector<int64_t>& left_shape, const Layout& right,
                  const std::vector<int64_t>& right_shape) {
  check_ranks("direct_sum", left_shape, right_shape);
  refuse_swizzled("direct_sum", "left", left);
  refuse_swizzled("direct_sum", "right", right);
  return interleave(left.group(left_shape), right.group(right_shape), Swizzle{});
}

}  // namespace helve
