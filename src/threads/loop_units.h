// The loops over elements and the reductions of a kernel, with their uses of buffers.
// Layout inference depends on nothing else.
#pragma once

#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "helve/threads/layout_inference.h"

namespace helve {

/// The accesses to one block buffer in a loop: dimension k of the buffer is indexed by variable dims[k] of the loop, or
/// has extent 1 (-1).
struct LoopUse {
  const Buffer* buffer;
  std::vector<int> dims;
  bool written = false;
};

/// One loop over elements, or one reduction as the loop over its source.
struct LoopUnit {
  const StmtNode* stmt;
  std::vector<Expr> extents;
  std::vector<LoopUse> uses;  ///< of block buffers, plain ones only
  std::vector<std::pair<const Buffer*, bool>> touched;  ///< every buffer, and whether it is written
  int reduced = -1;  ///< the reduced dimension of a reduction
  bool at_once = false;  ///< each thread holds all of its elements together
  int64_t vector = 1;  ///< elements of the widest contiguous global access
  bool whole = false;  ///< an iteration is already as much as a thread moves at once

  bool constant() const;
  int64_t elements() const;
  /// Does the buffer have each dimension of the loop whose extent is not 1?
  bool covered_by(const LoopUse& use) const;
  /// Does the loop read and write the same memory, outside of `registers`?
  bool updates_memory(const std::unordered_set<const Buffer*>& registers, const std::vector<MayAlias>& may_alias) const;
};

/// A use that registers cannot serve.
struct MemoryUse {
  const Buffer* buffer;
  std::string reason;
  const StmtNode* stmt;  ///< the statement of the block that contains it
};

struct LoopUnits {
  std::vector<LoopUnit> units;
  std::vector<BufferRef> allocated;  ///< by the block, outside of loops over elements
  std::vector<MemoryUse> memory;  ///< of buffers that cannot live in registers
};

LoopUnits loop_units(const Kernel& kernel, const Facts& facts, const Machine& machine);

}  // namespace helve
