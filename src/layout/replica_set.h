// The points that replicas and offset add to every element.
// Their set, not their spelling, decides whether two layouts are equal.
#pragma once

#include <vector>

#include "helve/layout/layout.h"

namespace helve::layout_detail {

struct ReplicaSet {
  std::vector<Iter> iters;  ///< positive strides, extents above 1, sorted by axis and stride, none continuing another
  Point offset;             ///< no zeros
};

/// C0, C1, C2: an equal set.
ReplicaSet canonical_replicas(const std::vector<Iter>& replica, const Point& offset);

}  // namespace helve::layout_detail
