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

/// Asks about the thread form of one function, keeping the answers: statements that stay the same objects are not asked
/// about again.
///
/// Statements of the block are run by all of its threads; a barrier (T.sync_threads, every collective) orders all
/// accesses before it and all after it. Accesses of one thread are ordered by the program. Iterations of a loop of the
/// block follow each other without a barrier unless the body has one. Registers and private memory are not shared.
class BarrierAnalysis {
 public:
  explicit BarrierAnalysis(const FunctionRef& f);
  ~BarrierAnalysis();

  /// Every pair that is not known to be ordered or apart, in the order in which a sequential run meets the later
  /// access.
  std::vector<UnorderedAccesses> unordered(const Kernel& kernel);
  /// The kernel with barriers before the later accesses: in front of a loop where the loop alone needs none, none that
  /// the others make superfluous.
  Ref<const Kernel> with_barriers(const Ref<const Kernel>& kernel);

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace helve
