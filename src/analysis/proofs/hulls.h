// Which accesses of one buffer may meet at all, by the intervals of their subscripts.
// A program of n statements on elements of their own has n^2 pairs of accesses; found by sorting, those that may meet
// are the only ones that anything is asked about.
#pragma once

#include <utility>
#include <vector>

#include "query.h"

namespace helve::proofs {

/// Accesses that one question answers for: below the same steps, the same elements, in the same manner.
struct Alike {
  size_t first;
  size_t second;  ///< `first` where no other is like it
};
/// In order of their first; numbers are places in `accesses`.
std::vector<Alike> alike(const std::vector<const Access*>& accesses);

/// The pairs (i, k), i <= k, of accesses of the same buffer, a write among them, whose hulls intersect in every
/// dimension: the boxes that hold all they may touch, in whatever iterations of the loops around them.
std::vector<std::pair<size_t, size_t>> meeting_hulls(const std::vector<const Access*>& accesses, PathFacts& facts);

}  // namespace helve::proofs
