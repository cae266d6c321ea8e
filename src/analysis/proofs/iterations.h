// The iterations of a loop that is promised to be independent, and which of their accesses may conflict.
// The proof, the query to isl and the error that tells of a counterexample have files of their own and share this.
#pragma once

#include <vector>

#include "access_pairs.h"
#include "query.h"

namespace helve::proofs {

/// A loop (parallel or Persistent) or a kernel, whose iterations are its blocks or cores.
struct Iterations {
  Iterations(const AccessModel& m, const IndependentLoop& independent);

  const AccessModel& model;
  const Path& loop;  ///< from the function's body to the loop
  size_t first, last;  ///< the accesses inside the loop
  const Step& step;  ///< of the loop
  size_t at;  ///< position of the loop on its path
  size_t from;  ///< from here on the two iterations have different variables
  bool is_kernel = false;
  bool is_persistent = false;
  bool mesh = false;
};

/// A pair of accesses by two iterations; `first` belongs to the iteration whose variables keep their names.
struct Pair {
  const Access* first;
  const Access* second;
};

/// The pairs that may conflict: in memory that the iterations share, at least one a write. In program order of the
/// first access, then of the second; of equivalent pairs only the first.
std::vector<Pair> conflicts(const Iterations& of, const SharedNames& names, PathFacts& facts);

/// Are both accesses to tiles of the cores' own blocks of one tensor?
bool in_blocks(const Iterations& of, const Access& a, const Access& b);

/// The axes of the mesh along which cores hold copies of one block, which are one memory if the tensor is one array.
std::vector<size_t> replica_axes(const Iterations& of, const MeshTensor& tensor);

}  // namespace helve::proofs
