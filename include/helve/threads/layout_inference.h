// Which block buffers live in registers, and how loops are divided among the threads of a block.
// T.alloc_fragment and T.alloc_shared are treated alike: a buffer all of whose uses fit one division of the threads
// lives in registers.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/function.h"
#include "helve/target/machine.h"
#include "helve/threads/element_loop.h"
#include "helve/threads/thread_layout.h"

namespace helve {

/// Where one buffer of a kernel is placed, and why.
struct BufferPlace {
  BufferRef buffer;
  bool registers = false;
  std::string reason;  ///< why a buffer is not in registers; "annotated" where the program says so; else empty
};

/// A statement that cannot use a fragment in the layout that the program gives.
struct LayoutConflict {
  const StmtNode* stmt;
  const Buffer* buffer;
  std::string reason;
  std::optional<ThreadLayout> division;  ///< of the statement's elements, if the two differ
};

/// The result for one kernel: a deterministic function of its statements.
struct BlockLayouts {
  std::unordered_map<const StmtNode*, ThreadLayout> loops;     ///< of every divided loop and every reduction
  std::unordered_map<const Buffer*, ThreadLayout> registers;  ///< of the buffers that live in registers
  std::vector<BufferPlace> places;  ///< every buffer allocated by the block, in program order
  std::optional<LayoutConflict> conflict;  ///< the first one; the rest is inferred as if there were none
};

/// Buffers that must be in shared memory, and why.
using MemoryBuffers = std::unordered_map<const Buffer*, std::string>;

/// Loops are visited from the largest to the smallest. A layout of a fragment propagates to the loops over it. A loop
/// without such a fragment gets a seed layout, in which neighbouring threads access neighbouring vectors of global
/// memory, as wide as they can be; it propagates to the loop's fragments. A buffer is demoted to shared memory if an
/// access is not to the element of such a loop, if two loops need different layouts, or if registers are short. Layouts
/// that the program gives come first and are kept: loops over such a fragment are divided by them, and a statement that
/// cannot be is a conflict.
BlockLayouts infer_layouts(const Kernel& kernel, const std::vector<MayAlias>& may_alias, const Facts& facts,
                           const Machine& machine, const MemoryBuffers& memory = {});

}  // namespace helve
