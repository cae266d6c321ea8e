// The canonical form.
// Equal maps should look equal: rules D0, D1 and C0 to C2 of the Axe paper, with strides 0 decided as well.
#include <algorithm>

#include "blocks.h"
#include "helve/layout/layout.h"
#include "integers.h"
#include "replica_set.h"

namespace helve {

namespace layout_detail {

namespace {

/// C2: one step that merges two iters of one axis where the wider continues the narrower; false when there is none.
bool merge_once(Iters& iters) {
  for (size_t i = 0; i < iters.size(); ++i) {
    for (size_t j = 0; j < iters.size(); ++j) {
      if (i == j || iters[i].axis != iters[j].axis || iters[j].stride % iters[i].stride != 0) continue;
      int64_t ratio = iters[j].stride / iters[i].stride;
      if (ratio > iters[i].extent) continue;
      iters[i].extent += ratio * (iters[j].extent - 1);
      iters.erase(iters.begin() + j);
      return true;
    }
  }
  return false;
}

}  // namespace

ReplicaSet canonical_replicas(const Iters& replica, const Point& offset) {
  ReplicaSet set{{}, offset};
  for (Iter iter : replica) {
    if (iter.extent == 1 || iter.stride == 0) continue;
    if (iter.stride < 0) {
      set.offset[iter.axis] += (iter.extent - 1) * iter.stride;
      iter.stride = -iter.stride;
    }
    set.iters.push_back(iter);
  }
  erase_if(set.offset, [](const auto& entry) { return entry.second == 0; });
  auto before = [](const Iter& a, const Iter& b) {
    if (a.axis != b.axis) return a.axis < b.axis;
    return a.stride != b.stride ? a.stride < b.stride : a.extent < b.extent;
  };
  do {
    std::sort(set.iters.begin(), set.iters.end(), before);
  } while (merge_once(set.iters));
  return set;
}

}  // namespace layout_detail

namespace {

/// Whether all addresses lie below the lowest source bit of the swizzle, so that it moves nothing.
bool moves_nothing(const Layout& layout) {
  int64_t low = layout.offset(axes::m());
  int64_t high = low;
  for (const auto* iters : {&layout.shard(), &layout.replica()}) {
    for (const Iter& iter : *iters) {
      if (iter.axis == axes::m()) (iter.stride < 0 ? low : high) += (iter.extent - 1) * iter.stride;
    }
  }
  const Swizzle& swizzle = layout.swizzle();
  return low >= 0 && high < int64_t{1} << (swizzle.base + std::max(swizzle.shift, 0));
}

}  // namespace

Layout Layout::canonicalize() const {
  Layout result;
  result.size_ = size_;
  layout_detail::append_normalized(result.shard_, shard_);
  if (replica_.empty()) {
    for (const auto& [axis, value] : offset_) {
      if (value != 0) result.offset_.append(axis, value);
    }
  } else {
    layout_detail::ReplicaSet set = layout_detail::canonical_replicas(replica_, offset_);
    result.replica_ = set.iters;
    result.offset_ = set.offset;
  }
  result.find_axes(axes_);
  if (!swizzle_.identity() && !moves_nothing(*this)) result.swizzle_ = swizzle_;
  return result;
}

}  // namespace helve
