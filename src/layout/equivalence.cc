// Equality of layouts as maps.
// The set of an index is the shard's place plus one fixed finite set, so two maps are equal when their shard parts are
// and their replica sets are; canonical shards decide the first, and lists of sums the second where no unique form
// exists.
#include <algorithm>

#include "blocks.h"
#include "helve/layout/layout.h"
#include "integers.h"
#include "replica_set.h"

namespace helve {

namespace {

using layout_detail::canonical_replicas;
using layout_detail::normalize_shard;
using layout_detail::replica_sums;
using layout_detail::ReplicaSet;
using layout_detail::StepCounter;

Iters on_axis(const Iters& iters, Axis axis) {
  Iters result;
  for (const Iter& iter : iters) {
    if (iter.axis == axis) result.push_back(iter);
  }
  return result;
}

/// The gap condition: each stride is beyond the continuation of the one before. Sets under it have one canonical form.
bool has_gaps(const Iters& iters) {
  for (size_t k = 0; k + 1 < iters.size(); ++k) {
    if (layout_detail::Wide{iters[k].extent} * iters[k].stride >= iters[k + 1].stride) return false;
  }
  return true;
}

int64_t reach(const Iters& iters) {
  int64_t sum = 0;
  for (const Iter& iter : iters) sum += (iter.extent - 1) * iter.stride;
  return sum;
}

bool equal_sets(const ReplicaSet& a, const ReplicaSet& b, StepCounter& counter) {
  if (a.offset != b.offset) return false;  // the least point: all strides are positive
  if (a.iters == b.iters) return true;
  std::vector<Axis> axes;
  for (const auto* iters : {&a.iters, &b.iters}) {
    for (const Iter& iter : *iters) axes.push_back(iter.axis);
  }
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  for (Axis axis : axes) {
    Iters left = on_axis(a.iters, axis);
    Iters right = on_axis(b.iters, axis);
    if (left == right) continue;
    if ((has_gaps(left) && has_gaps(right)) || reach(left) != reach(right)) return false;
    if (replica_sums(left, axis, counter) != replica_sums(right, axis, counter)) return false;
  }
  return true;
}

bool equal_without_swizzle(const Layout& a, const Layout& b, StepCounter& counter) {
  return normalize_shard(a.shard()) == normalize_shard(b.shard()) &&
         equal_sets(canonical_replicas(a.replica(), a.offset()), canonical_replicas(b.replica(), b.offset()), counter);
}

/// The layout with the coordinates on `m` (or all others) set to 0, and without its swizzle.
Layout restrict_to(const Layout& layout, bool memory) {
  auto kept = [&](Axis axis) { return (axis == axes::m()) == memory; };
  Iters shard = layout.shard();
  for (Iter& iter : shard) {
    if (!kept(iter.axis)) iter.stride = 0;
  }
  Iters replica = layout.replica();
  erase_if(replica, [&](const Iter& iter) { return !kept(iter.axis); });
  Point offset = layout.offset();
  erase_if(offset, [&](const auto& entry) { return !kept(entry.first); });
  return Layout(normalize_shard(shard), std::move(replica), std::move(offset));
}

/// The addresses of an index under a layout of the memory axis.
std::vector<int64_t> addresses(const Layout& memory, const std::vector<int64_t>& replicas, const Swizzle& swizzle,
                               int64_t index) {
  int64_t place = memory.offset(axes::m());
  for (size_t k = memory.shard().size(); k-- > 0;) {
    const Iter& iter = memory.shard()[k];
    place += index % iter.extent * iter.stride;
    index /= iter.extent;
  }
  std::vector<int64_t> result;
  for (int64_t replica : replicas) result.push_back(swizzle.apply(place + replica));
  std::sort(result.begin(), result.end());
  return result;
}

/// Two different swizzles: each index's set is a product over axes, so only the memory axis has to be listed.
bool equal_addresses(const Layout& a, const Layout& b, StepCounter& counter) {
  Layout left = restrict_to(a, true);
  Layout right = restrict_to(b, true);
  auto left_set = canonical_replicas(left.replica(), left.offset());
  auto right_set = canonical_replicas(right.replica(), right.offset());
  left = Layout(left.shard(), {}, left_set.offset);
  right = Layout(right.shard(), {}, right_set.offset);
  std::vector<int64_t> left_sums = replica_sums(left_set.iters, axes::m(), counter);
  std::vector<int64_t> right_sums = replica_sums(right_set.iters, axes::m(), counter);
  if (left_sums.size() != right_sums.size()) return false;
  for (int64_t index = 0; index < a.size(); ++index) {
    counter.step(static_cast<int64_t>(left_sums.size()));
    if (addresses(left, left_sums, a.swizzle(), index) != addresses(right, right_sums, b.swizzle(), index)) {
      return false;
    }
  }
  return true;
}

}  // namespace

bool Layout::equivalent(const Layout& other) const {
  if (size() != other.size()) return false;
  StepCounter counter("equality", *this);
  if (swizzle() == other.swizzle()) return equal_without_swizzle(*this, other, counter);
  Layout left = canonicalize();
  Layout right = other.canonicalize();
  if (left.swizzle() == right.swizzle()) return equal_without_swizzle(left, right, counter);
  return equal_without_swizzle(restrict_to(left, false), restrict_to(right, false), counter) &&
         equal_addresses(left, right, counter);
}

}  // namespace helve
