// Which threads of a block touch one element without a barrier between them.
// The pass that inserts barriers and the check that they suffice ask the same exact question, pair by pair.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

/// Two accesses of one element of block or global memory, by different threads of a block, one of them a write, that
/// nothing orders.
struct UnorderedAccesses {
  BufferRef buffer;
  Stmt earlier;
  Stmt later;     ///< a barrier before this statement orders them
  bool certain;   ///< there are two such threads; otherwise it could not be excluded
};

/// What was done for the answers: it grows with the program as its distinct accesses do.
struct BarrierWork {
  size_t pairs = 0;      ///< of accesses that were looked at
  size_t questions = 0;  ///< of these, put to isl
};

/// Asks about the thread form of one function, keeping the answers: accesses that do the same are not asked about
/// again.
///
/// Statements of the block are run by all of its threads; a barrier (T.sync_threads, every collective) orders all
/// accesses before it and all after it. Accesses of one thread are ordered by the program. Iterations of a loop of the
/// block follow each other without a barrier unless the body has one, and a loop that may not run at all orders
/// nothing. Registers and private memory are not shared. Each access may put a fixed number of questions, of a fixed
/// number of operations; a pair that is not decided so counts as unordered.
class BarrierAnalysis {
 public:
  explicit BarrierAnalysis(const FunctionRef& f);
  ~BarrierAnalysis();

  /// Every pair that is not known to be ordered or apart, in the order in which a sequential run meets the later
  /// access.
  std::vector<UnorderedAccesses> unordered(const Kernel& kernel);
  /// The kernel with barriers before the later accesses: in front of a loop where the loop alone needs none, none that
  /// the others make superfluous. `undecided` takes what stands only because the budget did not suffice.
  Ref<const Kernel> with_barriers(const Ref<const Kernel>& kernel, std::vector<UnorderedAccesses>* undecided = nullptr);
  const BarrierWork& work() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace helve
