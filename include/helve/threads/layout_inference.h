// Which block buffers live in registers, and how loops are divided among the threads of a block.
// Fragments and block memory are one question: a buffer whose every use fits one division of the threads needs no
// memory.
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

/// The place of one buffer of a kernel, and why it is there.
struct BufferPlace {
  BufferRef buffer;
  bool registers = false;
  std::string reason;  ///< why a buffer is not in registers; "annotated" where the program says so; else empty
};

/// A statement that cannot use a fragment as the program placed it.
struct LayoutConflict {
  const StmtNode* stmt;
  const Buffer* buffer;
  std::string reason;
  std::optional<ThreadLayout> division;  ///< of the statement's elements, where it is what differs
};

/// The answer for one kernel: a deterministic function of its statements.
struct BlockLayouts {
  std::unordered_map<const StmtNode*, ThreadLayout> loops;     ///< of every divided loop and every reduction
  std::unordered_map<const Buffer*, ThreadLayout> registers;  ///< of the buffers that live in registers
  std::vector<BufferPlace> places;  ///< every buffer allocated by the block, in program order
  std::optional<LayoutConflict> conflict;  ///< the first one; the rest is decided as if there were none
};

/// Buffers that have to stand in block memory, and why.
using MemoryBuffers = std::unordered_map<const Buffer*, std::string>;

/// Loops are taken from the largest to the smallest. A loop whose fragments have layouts is divided by them; another
/// one so that its widest accesses of global memory are vectors side by side, and its fragments get their layouts from
/// it. A buffer stays in block memory where an access is no element of such a loop, where two loops need it divided
/// differently, or where registers are short. What the program placed comes first and stays: loops over a fragment with
/// a layout are divided by it, and what that does not serve is a conflict.
BlockLayouts infer_layouts(const Kernel& kernel, const std::vector<MayAlias>& may_alias, const Facts& facts,
                           const Machine& machine, const MemoryBuffers& memory = {});

}  // namespace helve
