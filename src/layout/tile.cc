// Kronecker product and direct sum.
// Tiling, sharding over threads and devices, and strided atoms are all one of these two.
#include "blocks.h"
#include "helve/layout/layout.h"
#include "integers.h"
#include "operands.h"

namespace helve {

namespace {

using layout_detail::Blocks;
using layout_detail::check_admitted;
using layout_detail::check_ranks;
using layout_detail::checked_add;
using layout_detail::checked_multiply;
using layout_detail::cut_blocks;
using layout_detail::moving_swizzle;
using layout_detail::normalize_shard;
using layout_detail::refuse_swizzled;

/// The blocks of an operand, dimension by dimension.
Blocks blocks_of(const Layout& layout, const std::vector<int64_t>& shape) {
  check_admitted(layout, shape);
  return cut_blocks(normalize_shard(layout.shard()), shape, layout);
}

/// By what the strides and offsets of the first operand are multiplied, axis by axis: 1 when there are no factors.
struct Factors {
  Axes axes;
  InlineVector<int64_t, 4> values;

  int64_t at(Axis axis) const {
    for (size_t a = 0; a < axes.size(); ++a) {
      if (axes[a] == axis) return values[a];
    }
    return 1;
  }
  Iter scale(Iter iter) const {
    iter.stride = checked_multiply(iter.stride, at(iter.axis), "a stride");
    return iter;
  }
};

/// The sum of the scaled left map and the right one on the interleaved domain.
Layout interleave(const Layout& left, const Blocks& left_blocks, const Factors& factors, const Layout& right,
                  const Blocks& right_blocks, const Swizzle& swizzle) {
  Iters shard;
  for (size_t d = 0; d + 1 < left_blocks.separators.size(); ++d) {
    for (const Iter* iter = left_blocks.begin(d); iter != left_blocks.end(d); ++iter) {
      shard.push_back(factors.scale(*iter));
    }
    shard.append(right_blocks.begin(d), right_blocks.end(d));
  }
  Iters replica;
  for (const Iter& iter : left.replica()) replica.push_back(factors.scale(iter));
  replica.append(right.replica().begin(), right.replica().end());
  Point offset = right.offset();
  for (const auto& [axis, value] : left.offset()) {
    int64_t& sum = offset[axis];
    sum = checked_add(sum, checked_multiply(value, factors.at(axis), "an offset"), "an offset");
  }
  return Layout(shard, replica, offset, swizzle);
}

}  // namespace

Layout tile(const Layout& outer, const std::vector<int64_t>& outer_shape, const Layout& inner,
            const std::vector<int64_t>& inner_shape) {
  check_ranks("tile", outer_shape, inner_shape);
  refuse_swizzled("tile", "outer", outer);
  // Law: a swizzle commutes with adding multiples of its period.
  const Swizzle swizzle = moving_swizzle(inner);
  if (!swizzle.identity() && inner.span(axes::m()) % swizzle.period() != 0) {
    throw_layout_error(Code::SwizzlePeriod, {{"span", inner.span(axes::m())}, {"period", swizzle.period()}});
  }
  const Blocks right = blocks_of(inner, inner_shape);
  const Blocks left = blocks_of(outer, outer_shape);
  Factors spans{outer.axes(), {}};
  for (Axis axis : spans.axes) spans.values.push_back(inner.span(axis));
  return interleave(outer, left, spans, inner, right, swizzle);
}

Layout direct_sum(const Layout& left, const std::vector<int64_t>& left_shape, const Layout& right,
                  const std::vector<int64_t>& right_shape) {
  check_ranks("direct_sum", left_shape, right_shape);
  refuse_swizzled("direct_sum", "left", left);
  refuse_swizzled("direct_sum", "right", right);
  const Blocks left_blocks = blocks_of(left, left_shape);
  return interleave(left, left_blocks, {}, right, blocks_of(right, right_shape), Swizzle{});
}

}  // namespace helve
