// The canonical form.
// Equal maps should look equal: rules D0, D1 and C0 to C2 of the Axe paper, with strides 0 decided as well.
#include <algorithm>

#include "helve/layout/layout.h"
#include "integers.h"
#include "replica_set.h"

namespace helve {

namespace layout_detail {

std::vector<Iter> normalize_shard(const std::vector<Iter>& shard) {
  // Law: the last extent is the first index where the map leaves its first slope, so the result is unique. From the
  // back, each iter either continues the one after it or starts a new digit.
  std::vector<Iter> reversed;
  for (size_t k = shard.size(); k-- > 0;) {
    Iter iter = shard[k];
    if (iter.extent == 1) continue;
    if (iter.stride == 0) iter.axis = axes::m();
    if (!reversed.empty()) {
      Iter& last = reversed.back();
      if (last.axis == iter.axis && Wide{last.stride} * last.extent == iter.stride) {
        last.extent *= iter.extent;
        continue;
      }
    }
    reversed.push_back(iter);
  }
  return {reversed.rbegin(), reversed.rend()};
}

namespace {

/// C2: one step that merges two iters of one axis where the wider continues the narrower; false when there is none.
bool merge_once(std::vector<Iter>& iters) {
  for (size_t i = 0; i < iters.size(); ++i) {
    for (size_t j = 0; j < iters.size(); ++j) {
      if (i == j || iters[i].axis != iters[j].axis || iters[j].stride % iters[i].stride != 0) continue;
      int64_t ratio = iters[j].stride / iters[i].stride;
      if (ratio > iters[i].extent) continue;
      iters[i].extent += ratio * (iters[j].extent - 1);
      iters.erase(iters.begin() + static_cast<ptrdiff_t>(j));
      return true;
    }
  }
  return false;
}

}  // namespace

ReplicaSet canonical_replicas(const std::vector<Iter>& replica, const Point& offset) {
  ReplicaSet set{{}, offset};
  for (Iter iter : replica) {
    if (iter.extent == 1 || iter.stride == 0) continue;
    if (iter.stride < 0) {
      set.offset[iter.axis] += (iter.extent - 1) * iter.stride;
      iter.stride = -iter.stride;
    }
    set.iters.push_back(iter);
  }
  std::erase_if(set.offset, [](const auto& entry) { return entry.second == 0; });
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

Layout Layout::canonicalize() const {
  auto [replicas, origin] = layout_detail::canonical_replicas(replica(), offset());
  Layout plain(layout_detail::normalize_shard(shard()), std::move(replicas), std::move(origin));
  if (swizzle().identity()) return plain;
  // The swizzle moves nothing when all source bits of all addresses are 0.
  int64_t low = plain.offset(axes::m());
  for (const Iter& iter : plain.shard()) {
    if (iter.axis == axes::m() && iter.stride < 0) low += (iter.extent - 1) * iter.stride;
  }
  int64_t high = low + (plain.span(axes::m()) - 1);
  int64_t source = int64_t{1} << (swizzle().base + std::max(swizzle().shift, 0));
  if (low >= 0 && high < source) return plain;
  return Layout(plain.shard(), plain.replica(), plain.offset(), swizzle());
}

}  // namespace helve
