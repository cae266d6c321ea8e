// What the threads of a warp touch of a buffer at once.
// Sampled from the program of a thread: subscripts are evaluated for each thread, other variables at their start.
#pragma once

#include <unordered_map>
#include <vector>

#include "helve/ir/tensor/stmt.h"
#include "helve/layout/banks.h"

namespace helve {

struct MemoryAccesses {
  std::vector<BankAccess> warps;  ///< by row-major flat index, of the first warps of the block
  bool matrices = false;          ///< some are of rows of matrices, which have to lie together
};

/// Of every buffer of block memory.
using WarpAccesses = std::unordered_map<const Buffer*, MemoryAccesses>;
WarpAccesses warp_accesses(const Kernel& kernel);

}  // namespace helve
