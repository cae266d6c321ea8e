// A mesh kernel as a tree of parts: segments between collectives, the collectives, and the control flow around them.
// Splitting first builds this tree, then finds the values that cross parts, then writes the host body.
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
  std::unordered_map<const Buffer*, size_t> depths;  ///< host loops around an allocation: each iteration has its own
  std::vector<BufferRef> controls;  ///< Global, of one element: conditions, bounds, operands that a part computes
  bool memory_decides = false;  ///< Is there a control that depends on memory?
  std::unordered_set<const Var*> deciding;  ///< the core's coordinates that controls depend on
  std::unordered_set<const Buffer*> lasting;  ///< controls that are the same for all iterations of a Persistent loop
  std::vector<Part> parts;
  std::vector<Part*> leaves;  ///< segments and collectives in order
};

/// The parts of a kernel with collectives. Scalar values that are bound around a collective are substituted into their
/// uses; one that loads from memory cannot cross a collective (ValueAcrossCollective). Control flow around a collective
/// and its operands move to the host body. A condition, bound, root, shift or source that depends on memory or on the
/// core's coordinates is stored to a control by the part before it, and at the end of each iteration of a while loop;
/// if it is the same for all iterations of a Persistent loop, since it reads nothing that is `written`, by the part
/// before that loop. Regions of collectives cannot depend on those (KernelValueAtCollective).
KernelParts parts_of(const Kernel& kernel, const std::unordered_set<const Buffer*>& written);

}  // namespace helve
