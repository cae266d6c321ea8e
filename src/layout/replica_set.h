// The points that replicas and offset add to every element.
// Their set, not their spelling, decides whether two layouts are equal.
#pragma once

#include <optional>
#include <vector>

#include "helve/layout/layout.h"
#include "integers.h"

namespace helve::layout_detail {

struct ReplicaSet {
  Iters iters;  ///< positive strides, extents above 1, sorted by axis and stride, none continuing another
  Point offset;             ///< no zeros; the least point of the set
};

/// C0, C1, C2: an equal set.
ReplicaSet canonical_replicas(const Iters& replica, const Point& offset);

/// The distances of the set's coordinates on `axis` from the least, sorted; `iters` as in ReplicaSet.
std::vector<int64_t> replica_sums(const Iters& iters, Axis axis, StepCounter& counter);

/// Iters on `axis`, strides positive multiples of `step`, whose sums added to `start` make `target`; none when there
/// are none. Both sets are sorted and contain 0 as their least element. Exact; refused through `counter` when the
/// search is too long.
std::optional<Iters> complete_set(const std::vector<int64_t>& target, const std::vector<int64_t>& start, int64_t step,
                                  Axis axis, StepCounter& counter);

}  // namespace helve::layout_detail
