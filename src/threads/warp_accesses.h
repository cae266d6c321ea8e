// What the threads of a warp touch of a buffer at once.
// Sampled from the program of a thread: subscripts are evaluated for each thread, other variables at their start.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "helve/ir/tensor/stmt.h"
#include "helve/layout/banks.h"

namespace helve {

struct MemoryAccesses {
  std::vector<BankAccess> warps;  ///< by row-major flat index, of the first warps of the block
  int64_t together = 1;           ///< lanes of the widest vector loop whose elements lie side by side
  bool whole = false;             ///< some move by instructions that take no elements apart
  bool rows = false;              ///< some are of the copy engine, which goes row by row
  std::optional<Swizzle> boxes;  ///< its copies are of boxes, and may swizzle them so, unless there are other copies
};

/// Of every buffer of block memory.
using WarpAccesses = std::unordered_map<const Buffer*, MemoryAccesses>;
WarpAccesses warp_accesses(const Kernel& kernel);

}  // namespace helve
