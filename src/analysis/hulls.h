// Pairs of accesses to one buffer that may overlap, by the intervals of their subscripts.
// A program of n statements on different elements has n^2 pairs of accesses; sorting finds the few that need a proof.
#pragma once

#include <utility>
#include <vector>

#include "helve/analysis/path_facts.h"

namespace helve {

/// Do both touch the same elements in each instance of one path?
bool same_elements(const Access& a, const Access& b);

/// Accesses with the same answer: below the same steps, to the same elements, of the same kind.
struct Alike {
  size_t first;
  size_t second;  ///< `first` if it is the only one
};
/// In order of their first; numbers are positions in `accesses`.
std::vector<Alike> alike(const std::vector<const Access*>& accesses);

/// The pairs (i, k), i <= k, of accesses to the same buffer, at least one a write, whose hulls intersect in every
/// dimension. A hull is a box that contains all elements an access may touch, in all iterations of the loops around it.
std::vector<std::pair<size_t, size_t>> intersecting_hulls(const std::vector<const Access*>& accesses, PathFacts& facts);

}  // namespace helve
