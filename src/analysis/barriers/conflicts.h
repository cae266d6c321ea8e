// Do two accesses of different threads conflict?
// Ranges of indices decide most pairs. Each remaining pair is decided by isl once, and each access may use a fixed
// number of such queries, so that the work is linear in the program.
#pragma once

#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "access_table.h"
#include "helve/analysis/barriers.h"
#include "helve/arith/relation.h"
#include "residues.h"

namespace helve::barriers {

/// What is known of a pair of accesses.
enum class Conflict {
  None,
  Certain,    ///< there are two threads that conflict
  Possible,   ///< not affine, or dependent on data
  Undecided,  ///< the budget did not suffice
};

/// What the pairs need in between.
enum class Separator {
  Barrier,  ///< of accesses by different threads, one a write
  Fence,    ///< of what a thread writes, and a later access by TMA
  Arrival,  ///< of what TMA writes to global memory, and any later access
};

/// Which threads may meet.
enum class Between {
  Threads,     ///< any two
  Warpgroups,  ///< two of different warpgroups
};

/// The conflicts of one function, cached.
class ConflictQueries {
 public:
  ConflictQueries(const FunctionRef& f, AccessTable& table, Separator separator = Separator::Barrier,
                  Between between = Between::Threads);

  /// The variables that all accesses share are now those of this kernel.
  void begin(const Kernel& kernel) { kernel_ = &kernel; }

  /// Does `a` of one thread conflict with the later `b` of another one? Both are seen from the innermost loop around
  /// both; with `carried`, `a` is in an earlier iteration of that loop, which must be the innermost around `a`.
  Conflict ask(AccessId a, AccessId b, bool carried);

  const BarrierWork& work() const { return work_; }

 private:
  bool may_conflict(const BlockAccess& a, const BlockAccess& b) const;
  bool places_apart(AccessId a, AccessId b, bool carried) const;
  /// How the indices of dimension `d` compare wherever the two begin: with a modulus where bases differ, by any
  /// multiple of it. Nothing if a base depends on data.
  std::optional<ComparedOffsets> compared_offsets(AccessId a, AccessId b, bool carried, size_t d) const;
  /// Are the elements of each warpgroup apart from those of every other one, by ranges of indices?
  bool warpgroups_apart(AccessId a, AccessId b, bool carried) const;
  /// The box around all accesses with the bases of the two, where one question about it answers for all.
  std::optional<AccessId> common_box(AccessId a, AccessId b, bool carried) const;
  /// Extents of the function, and the block's place in the grid.
  std::vector<VarRef> shared_variables() const;
  /// The answer where guards that depend on what memory holds may all be true: no budget tells more of them.
  Conflict without_data(const BlockAccess& a, const BlockAccess& b, bool carried);
  /// Are different threads apart wherever the two begin? Asked where bases are costly to tell.
  bool apart_for_any_bases(AccessId a, AccessId b, bool carried);

  FunctionRef function_;
  AccessTable& table_;
  Separator separator_;
  Between between_;
  const Kernel* kernel_ = nullptr;
  ExactEngine engine_;
  std::unordered_map<uint64_t, Conflict> answers_;
  std::unordered_map<AccessId, int> queries_;  ///< of isl, by the later access
  std::unordered_set<AccessId> hopeful_;  ///< boxes two members of which are apart
  BarrierWork work_;
};

}  // namespace helve::barriers
