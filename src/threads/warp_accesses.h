// The simultaneous accesses of a warp's threads to a buffer.
// They are sampled from the program of a thread: subscripts are evaluated for each thread, with other variables at
// their begin.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "helve/ir/tensor/stmt.h"
#include "helve/layout/banks.h"
#include "helve/target/machine.h"

namespace helve {

struct MemoryAccesses {
  std::vector<BankAccess> warps;  ///< by row-major flat index, of the first warps of the block
  int64_t together = 1;           ///< lanes of the widest vector loop over contiguous elements
  bool whole = false;             ///< some are made by instructions that need contiguous elements
  bool rows = false;              ///< some are TMA copies, which are made row by row
  std::optional<Swizzle> boxes;  ///< its copies are boxes, which may have this swizzle unless there are other copies
};

/// For every buffer of shared memory.
using WarpAccesses = std::unordered_map<const Buffer*, MemoryAccesses>;
WarpAccesses warp_accesses(const Kernel& kernel, const Machine& machine);

}  // namespace helve
