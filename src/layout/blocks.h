// Shards cut into blocks.
// Grouping, products and recognition all ask for the iters of one dimension of a shape; they come from one cut of the
// shortest equal iters.
#pragma once

#include <optional>
#include <vector>

#include "helve/layout/layout.h"

namespace helve {

inline void Layout::find_axes(const Axes& known) {
  size_t placed = 0;
  for (Axis axis : known) {
    const size_t before = placed;
    for (const Iter& iter : shard_) placed += iter.axis == axis ? 1 : 0;
    bool used = placed != before || offset_.count(axis) != 0;
    for (const Iter& iter : replica_) used |= iter.axis == axis;
    if (used) axes_.push_back(axis);
  }
  if (placed != shard_.size()) find_axes();  // an iter of stride 0 has moved to `m`
}

inline void Layout::complete(Layout& result) const {
  if (!replica_.empty()) result.replica_ = replica_;
  if (!offset_.empty()) result.offset_ = offset_;
  result.swizzle_ = swizzle_;
  result.size_ = size_;
  result.find_axes(axes_);
}

}  // namespace helve

namespace helve::layout_detail {

/// Appends the iters after D0 and D1: the unique shortest ones of the same map, without units; stride 0 on `m`.
inline void append_normalized(Iters& result, const Iters& shard) {
  // Law: the last extent is the first index where the map leaves its first slope, so the result is unique. Each iter
  // either continues into the next one or ends a digit.
  const Iter* iter = shard.begin();
  const Iter* end = shard.end();
  while (iter != end && iter->extent == 1) ++iter;
  if (iter == end) return;
  auto axis_of = [](const Iter& each) { return each.stride == 0 ? axes::m() : each.axis; };
  Iter digit{iter->extent, iter->stride, axis_of(*iter)};
  while (++iter != end) {
    if (iter->extent == 1) continue;
    const Axis axis = axis_of(*iter);
    int64_t whole = 0;
    if (!__builtin_mul_overflow(iter->extent, iter->stride, &whole) && digit.stride == whole && digit.axis == axis) {
      digit.extent *= iter->extent;
      digit.stride = iter->stride;
    } else {
      result.push_back(digit);
      digit = {iter->extent, iter->stride, axis};
    }
  }
  result.push_back(digit);
}

inline Iters normalize_shard(const Iters& shard) {
  Iters result;
  append_normalized(result, shard);
  return result;
}

/// Iters cut into blocks, one for each dimension of a shape.
struct Blocks {
  Iters iters;
  Separators separators;

  const Iter* begin(size_t d) const { return iters.begin() + separators[d]; }
  const Iter* end(size_t d) const { return iters.begin() + separators[d + 1]; }
  Iters block(size_t d) const { return Iters(begin(d), end(d)); }
};

/// Where a shape cuts an iter off a divisor.
struct CutFailure {
  size_t dim;
  int64_t needed;
  Iter iter;
};

/// Cuts normalized iters with as many elements as `shape`; false, and `failure` filled when there is one, when no equal
/// iters have such blocks.
bool try_cut_blocks(const Iters& iters, const std::vector<int64_t>& shape, Iters& result, Separators& separators,
                    CutFailure* failure = nullptr);
std::optional<Blocks> try_cut_blocks(const Iters& iters, const std::vector<int64_t>& shape);

/// The same, or DivisibilityError, which names `layout`.
void cut_blocks(const Iters& iters, const std::vector<int64_t>& shape, const Layout& layout, Iters& result,
                Separators& separators);
Blocks cut_blocks(const Iters& iters, const std::vector<int64_t>& shape, const Layout& layout);

}  // namespace helve::layout_detail
