// Which block buffers live in registers, and how loops are divided among the threads of a block.
// Fragments and block memory are one question: a buffer whose every use fits one division of the threads needs no
// memory.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/dispatch/thread_layout.h"
#include "helve/ir/tensor/function.h"

namespace helve {

/// A nest of independent loops as one loop; `begins` are taken into the body.
struct ElementLoop {
  std::vector<VarRef> vars;
  std::vector<Expr> extents;
  Stmt body;
};

/// The loops that stand perfectly in each other, with bounds that do not depend on each other's variables.
ElementLoop element_loop(const For& loop);

/// Are the iterations of the loop independent, so that threads may share them?
inline bool is_element_loop(const For& loop) {
  return loop.loop == LoopKind::Parallel || loop.loop == LoopKind::Vectorized;
}

/// Does a loop over elements hold another one that is divided among the threads, rather than being divided itself?
bool is_divided_inside(const For& loop);

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
  std::vector<BufferPlace> places;                            ///< every buffer allocated by the block, in program order
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
                           const MemoryBuffers& memory = {});

/// The body of a kernel whose layouts have no conflict, and the layouts.
struct BlockDivision {
  Stmt body;
  BlockLayouts layouts;
};

/// The kernel's own body where there is no conflict. Else each statement that has one works on a copy of the fragment
/// in block memory, which is filled before and read back after it; under `strict` it is refused (LayoutConversion).
/// LayoutOutOfReach where no copy helps.
BlockDivision divide_block(const Kernel& kernel, const std::vector<MayAlias>& may_alias, const Facts& facts,
                           bool strict);

/// The registers, in words of 32 bits, that inference gives to one thread of a block of `threads`.
int64_t register_budget(int64_t threads);

}  // namespace helve
