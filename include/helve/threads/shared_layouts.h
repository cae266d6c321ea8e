// Layouts of block memory that keep the accesses of a warp apart.
// Which banks a warp meets is known when its program is; a swizzle or a longer row is then nothing to write by hand.
#pragma once

#include <string>
#include <vector>

#include "helve/ir/tensor/stmt.h"
#include "helve/layout/layout.h"

namespace helve {

/// The layout of one buffer of the block, and what it is good for.
struct SharedLayout {
  BufferRef buffer;
  Layout layout;
  std::string reason;
};

/// For each row-major buffer of a kernel in thread form whose accesses have bank conflicts, and fewer elsewhere: a
/// swizzle by the closed rule where that ends them, else the best swizzle, or padding where that is better
/// (layout/banks.h). Accesses are those of the first warps in the first iteration of each loop; one that depends on
/// data counts for nothing. Buffers with a layout keep it, and those that the copy engine fills or empties their rows;
/// where it does so by a tensor map, the map's swizzle is the only other choice.
std::vector<SharedLayout> choose_shared_layouts(const Kernel& kernel);

}  // namespace helve
