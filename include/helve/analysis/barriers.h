// Accesses of a block's threads to the same element without a barrier between them.
// The pass that inserts barriers and the check that they suffice share this exact analysis of pairs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

/// Two unordered accesses to the same element of shared or global memory by different threads of a block; at least one
/// is a write.
struct UnorderedAccesses {
  BufferRef buffer;
  Stmt earlier;
  Stmt later;     ///< a barrier before this statement orders them
  bool certain;   ///< there are two such threads; otherwise they could not be excluded
};

/// The work done so far; it is linear in the distinct accesses of the program.
struct BarrierWork {
  size_t pairs = 0;      ///< of accesses that were compared
  size_t found = 0;  ///< of these, conflicts of threads that were found by trying
  size_t queries = 0;  ///< decided by isl
};

/// Analyses the thread form of one function. Results are cached, so that equal accesses are analysed once.
///
/// Statements of the block are run by all of its threads; a barrier (T.sync_threads, every collective) orders all
/// accesses before it with all after it. Accesses of one thread are ordered by the program. There is no barrier between
/// iterations of a loop of the block unless the body has one, and a loop that may run zero times orders nothing.
/// Registers and private memory are not shared. Each access may use a fixed number of isl queries with a fixed number
/// of operations each; a pair that stays undecided counts as unordered.
class BarrierAnalysis {
 public:
  explicit BarrierAnalysis(const FunctionRef& f);
  ~BarrierAnalysis();

  /// Every pair that may conflict, in the order of the later access in a sequential run.
  std::vector<UnorderedAccesses> unordered(const Kernel& kernel);
  /// The kernel with barriers before the later accesses: in front of a loop if the loop itself needs none, and no
  /// superfluous ones. `undecided` receives the pairs for which a barrier is kept only because the budget did not
  /// suffice.
  Ref<const Kernel> with_barriers(const Ref<const Kernel>& kernel, std::vector<UnorderedAccesses>* undecided = nullptr);
  const BarrierWork& work() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

/// The kernel with a T.fence_async before each barrier that needs one, and before no other. It needs one if nothing
/// else fences what a thread has written before it and TMA accesses after it; of several barriers between the two, the
/// last one does. The kernel has its barriers, and no fences yet.
Ref<const Kernel> with_fences(const FunctionRef& f, const Ref<const Kernel>& kernel);

/// The kernel with T.sync_warpgroups in the place of each T.sync_threads that orders threads of one warpgroup alone. It
/// has its barriers and fences, and no two buffers of its shared memory have bytes in common.
Ref<const Kernel> with_warpgroup_barriers(const FunctionRef& f, const Ref<const Kernel>& kernel);

}  // namespace helve
