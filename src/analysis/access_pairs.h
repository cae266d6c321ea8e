// Which accesses of a list may touch one element, before two instances of them are asked about.
// Races and dependences start here: a program of n statements on different elements has n^2 pairs of accesses, and
// sorting the hulls of their subscripts finds the few that need a proof.
#pragma once

#include <unordered_set>
#include <utility>
#include <vector>

#include "helve/analysis/path_facts.h"

namespace helve {

/// Do both touch the same elements in each instance of one path?
bool same_elements(const Access& a, const Access& b);

/// Accesses with the same answer: below the same steps, to the same elements, of the same kind.
struct Alike {
  size_t first;
  size_t second;  ///< of another statement; `first` if there is none
};
/// In order of their first; numbers are positions in `accesses`.
std::vector<Alike> alike(const std::vector<const Access*>& accesses);

/// Which buffers of a function may be, or hold, one memory under two names: parameters that are not promised to be
/// apart, another core's buffers, buffers of shared memory that are placed over each other.
class SharedNames {
 public:
  explicit SharedNames(const Function& f);
  bool may_share(const Buffer& a, const Buffer& b) const;
  /// Are there any?
  bool any() const;

 private:
  const Function& function_;
  std::unordered_set<const Buffer*> peers_;
  bool placed_ = false;  ///< has shared memory places
};

/// The pairs (i, k), i <= k, of accesses that may touch one element and conflict: their buffers may share memory, or
/// are the same and their hulls intersect in every dimension. A hull is a box that contains all elements an access may
/// touch, in all iterations of the loops around it.
std::vector<std::pair<size_t, size_t>> conflicting_pairs(const std::vector<const Access*>& accesses,
                                                         const SharedNames& names, PathFacts& facts);

}  // namespace helve
