// A mesh kernel as a tree of parts: what runs between collectives, the collectives, and the control flow that holds
// them. Splitting first finds this tree, then decides what crosses parts, then writes the host body.
#pragma once

#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "crossing.h"
#include "helve/ir/tensor/function.h"

namespace helve {

struct Part {
  enum class Kind { Segment, Collective, Loop, Branch };
  Kind kind = Kind::Segment;
  std::vector<Stmt> stmts;      ///< Segment: statements without collectives, in order
  Stmt node;                    ///< Collective: the operation. Loop, Branch: the statement whose body was split
  std::vector<Part> body;       ///< Loop, Branch: parts of the body (then-branch)
  std::vector<Part> otherwise;  ///< Branch: parts of the else-branch
  Touch touch;                  ///< Segment, Collective
  size_t position = 0;          ///< Segment, Collective: order of leaves
  std::vector<const Part*> loops;  ///< enclosing host loops that repeat their body, outermost first
  const Part* persistent = nullptr;  ///< the enclosing Persistent loop, whose iterations share nothing

  const For* loop() const { return as<For>(node); }  ///< null for a while loop
  bool is_persistent() const { return loop() && loop()->loop == LoopKind::Persistent; }
};

struct KernelParts {
  std::vector<BufferRef> buffers;  ///< allocated where the kernel is split, in order
  std::unordered_map<const Buffer*, size_t> depths;  ///< host loops around a buffer's allocation: turns share nothing
  std::vector<BufferRef> decisions;  ///< Global, of one element: what a part leaves for the control flow that follows
  std::unordered_set<const Buffer*> lasting;  ///< decisions that are one for all iterations of a Persistent loop
  std::vector<Part> parts;
  std::vector<Part*> leaves;  ///< segments and collectives in order
};

/// The parts of a kernel that holds collectives. Scalar values bound where it is split are written into their uses; one
/// that loads from memory cannot cross a collective (ValueAcrossCollective). Control flow around a collective and its
/// operands move to the host body. What control flow takes from memory or from the core's coordinates is left in a
/// decision by the part before it, and at the end of each turn of a while loop; what every iteration of a Persistent
/// loop would decide equally, since it reads nothing that is `written`, by the part before that loop. Operands take
/// nothing from there (KernelValueAtCollective).
KernelParts parts_of(const Kernel& kernel, const std::unordered_set<const Buffer*>& written);

}  // namespace helve
