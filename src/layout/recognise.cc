// Recovery of an operand of a product or a sum.
// The shard of the whole is unique up to spelling, so its blocks are the operands' blocks; what is left is the set of
// points of replicas and offset, axis by axis.
#include "helve/layout/recognise.h"

#include <algorithm>
#include <limits>

#include "blocks.h"
#include "integers.h"
#include "operands.h"
#include "replica_set.h"

namespace helve {

namespace {

using layout_detail::Blocks;
using layout_detail::canonical_replicas;
using layout_detail::check_ranks;
using layout_detail::complete_set;
using layout_detail::narrow;
using layout_detail::normalize_shard;
using layout_detail::refuse_swizzled;
using layout_detail::replica_sums;
using layout_detail::ReplicaSet;
using layout_detail::StepCounter;
using layout_detail::Wide;

/// The whole's blocks and the known operand's, dimension by dimension, and both replica sets.
struct Parts {
  std::vector<Iters> slow;   ///< the whole's blocks of the first operand
  std::vector<Iters> fast;   ///< the whole's blocks of the second operand
  std::vector<Iters> known;  ///< the blocks of the known operand
  ReplicaSet whole_set;
  ReplicaSet known_set;
  std::vector<Axis> axes;
};

/// None when the shapes or the digits do not admit the operand.
std::optional<Parts> take_apart(const char* operation, const Layout& whole, const std::vector<int64_t>& whole_shape,
                                const Layout& known, const std::vector<int64_t>& known_shape, bool known_is_fast) {
  layout_detail::check_admitted(whole, whole_shape);
  layout_detail::check_admitted(known, known_shape);
  check_ranks(operation, whole_shape, known_shape);
  std::vector<int64_t> interleaved;
  for (size_t d = 0; d < whole_shape.size(); ++d) {
    if (whole_shape[d] % known_shape[d] != 0) return std::nullopt;
    interleaved.push_back(known_is_fast ? whole_shape[d] / known_shape[d] : known_shape[d]);
    interleaved.push_back(known_is_fast ? known_shape[d] : whole_shape[d] / known_shape[d]);
  }
  auto of_whole = layout_detail::try_cut_blocks(normalize_shard(whole.shard()), interleaved);
  auto of_known = layout_detail::try_cut_blocks(normalize_shard(known.shard()), known_shape);
  if (!of_whole || !of_known) return std::nullopt;
  Parts parts;
  for (size_t d = 0; d < whole_shape.size(); ++d) {
    parts.slow.push_back(of_whole->block(2 * d));
    parts.fast.push_back(of_whole->block(2 * d + 1));
    parts.known.push_back(of_known->block(d));
  }
  parts.whole_set = canonical_replicas(whole.replica(), whole.offset());
  parts.known_set = canonical_replicas(known.replica(), known.offset());
  parts.axes.assign(whole.axes().begin(), whole.axes().end());
  parts.axes.insert(parts.axes.end(), known.axes().begin(), known.axes().end());
  std::sort(parts.axes.begin(), parts.axes.end());
  parts.axes.erase(std::unique(parts.axes.begin(), parts.axes.end()), parts.axes.end());
  return parts;
}

Iters join_blocks(const std::vector<Iters>& blocks) {
  Iters shard;
  for (const Iters& block : blocks) shard.append(block.begin(), block.end());
  return shard;
}

/// Adds to `replica` and `offset` what `axis` needs so that known_scale * known + X is the whole's set, X in multiples
/// of x_scale; X is divided by x_scale. False when there is no such X.
bool recover_axis(const Parts& parts, Axis axis, int64_t known_scale, int64_t x_scale, StepCounter& counter,
                  Iters& replica, Point& offset) {
  Wide origin = parts.whole_set.offset.at(axis);
  origin -= Wide{known_scale} * parts.known_set.offset.at(axis);
  if (origin % x_scale != 0) return false;
  if (origin != 0) offset[axis] = narrow(origin / x_scale, "an offset");
  std::vector<int64_t> start = replica_sums(parts.known_set.iters, axis, counter);
  if (Wide{start.back()} * known_scale > std::numeric_limits<int64_t>::max()) return false;
  for (int64_t& value : start) value *= known_scale;
  auto iters = complete_set(replica_sums(parts.whole_set.iters, axis, counter), start, x_scale, axis, counter);
  if (!iters) return false;
  for (Iter iter : *iters) {
    iter.stride /= x_scale;
    replica.push_back(iter);
  }
  return true;
}

}  // namespace

std::optional<Layout> outer_of(const Layout& whole_, const std::vector<int64_t>& whole_shape, const Layout& inner_,
                               const std::vector<int64_t>& inner_shape) {
  // Without the swizzles that move nothing; equal ones commute with the outer's multiples of their period.
  Layout whole = whole_.canonicalize();
  Layout inner = inner_.canonicalize();
  auto parts = take_apart("outer_of", whole, whole_shape, inner, inner_shape, true);
  if (!parts) return std::nullopt;
  if (!inner.swizzle().identity() && inner.span(axes::m()) % inner.swizzle().period() != 0) return std::nullopt;
  if (whole.swizzle() != inner.swizzle()) {
    refuse_swizzled("outer_of", "whole", whole);
    refuse_swizzled("outer_of", "inner", inner);
  }
  if (parts->fast != parts->known) return std::nullopt;
  Iters shard = join_blocks(parts->slow);
  for (Iter& iter : shard) {
    int64_t span = inner.span(iter.axis);
    if (iter.stride % span != 0) return std::nullopt;
    iter.stride /= span;
  }
  StepCounter counter("outer_of", whole_);
  Iters replica;
  Point offset;
  for (Axis axis : parts->axes) {
    if (!recover_axis(*parts, axis, 1, inner.span(axis), counter, replica, offset)) return std::nullopt;
  }
  return Layout(std::move(shard), std::move(replica), std::move(offset));
}

namespace {

/// The span that an inner operand must have on `axis`: W * (1 + reach of the outer's replicas) is the span of the
/// inner's shard plus the reach of the whole's replicas. 0 when that is no integer.
int64_t required_span(const Parts& parts, Axis axis) {
  Wide numerator = 1;
  for (const Iters& block : parts.fast) {
    for (const Iter& iter : block) {
      if (iter.axis == axis) numerator += Wide{iter.extent - 1} * (iter.stride < 0 ? -iter.stride : iter.stride);
    }
  }
  for (const Iter& iter : parts.whole_set.iters) {
    if (iter.axis == axis) numerator += Wide{iter.extent - 1} * iter.stride;
  }
  Wide denominator = 1;
  for (const Iter& iter : parts.known_set.iters) {
    if (iter.axis == axis) denominator += Wide{iter.extent - 1} * iter.stride;
  }
  return numerator % denominator == 0 ? narrow(numerator / denominator, "a span") : 0;
}

}  // namespace

std::optional<Layout> inner_of(const Layout& whole_, const std::vector<int64_t>& whole_shape, const Layout& outer_,
                               const std::vector<int64_t>& outer_shape) {
  Layout whole = whole_.canonicalize();
  Layout outer = outer_.canonicalize();
  refuse_swizzled("inner_of", "outer", outer);
  refuse_swizzled("inner_of", "whole", whole);
  auto parts = take_apart("inner_of", whole, whole_shape, outer, outer_shape, false);
  if (!parts) return std::nullopt;
  for (Iters& block : parts->known) {
    for (Iter& iter : block) {
      int64_t span = required_span(*parts, iter.axis);
      Wide stride = Wide{iter.stride} * span;
      if (span == 0 || stride != static_cast<int64_t>(stride)) return std::nullopt;
      iter.stride = static_cast<int64_t>(stride);
    }
  }
  if (parts->slow != parts->known) return std::nullopt;
  StepCounter counter("inner_of", whole_);
  Iters replica;
  Point offset;
  for (Axis axis : parts->axes) {
    int64_t span = required_span(*parts, axis);
    if (span == 0 || !recover_axis(*parts, axis, span, 1, counter, replica, offset)) return std::nullopt;
  }
  return Layout(join_blocks(parts->fast), std::move(replica), std::move(offset));
}

namespace {

std::optional<Layout> addend_of(const char* operation, const Layout& whole_, const std::vector<int64_t>& whole_shape,
                                const Layout& known_, const std::vector<int64_t>& known_shape, bool known_is_fast) {
  Layout whole = whole_.canonicalize();
  Layout known = known_.canonicalize();
  refuse_swizzled(operation, "whole", whole);
  refuse_swizzled(operation, "known", known);
  auto parts = take_apart(operation, whole, whole_shape, known, known_shape, known_is_fast);
  if (!parts || (known_is_fast ? parts->fast : parts->slow) != parts->known) return std::nullopt;
  StepCounter counter(operation, whole_);
  Iters replica;
  Point offset;
  for (Axis axis : parts->axes) {
    if (!recover_axis(*parts, axis, 1, 1, counter, replica, offset)) return std::nullopt;
  }
  return Layout(join_blocks(known_is_fast ? parts->slow : parts->fast), std::move(replica), std::move(offset));
}

}  // namespace

std::optional<Layout> left_of(const Layout& whole, const std::vector<int64_t>& whole_shape, const Layout& right,
                              const std::vector<int64_t>& right_shape) {
  return addend_of("left_of", whole, whole_shape, right, right_shape, true);
}

std::optional<Layout> right_of(const Layout& whole, const std::vector<int64_t>& whole_shape, const Layout& left,
                               const std::vector<int64_t>& left_shape) {
  return addend_of("right_of", whole, whole_shape, left, left_shape, false);
}

}  // namespace helve
