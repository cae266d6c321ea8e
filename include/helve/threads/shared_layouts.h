// Layouts of shared memory without bank conflicts.
// The banks that a warp accesses follow from its program, so users need not choose a swizzle or padding by hand.
#pragma once

#include <string>
#include <vector>

#include "helve/ir/tensor/stmt.h"
#include "helve/layout/layout.h"
#include "helve/target/machine.h"

namespace helve {

/// The layout of one buffer of the block, and the reason for it.
struct SharedLayout {
  BufferRef buffer;
  Layout layout;
  std::string reason;
};

/// For each row-major buffer of a kernel in thread form whose accesses have bank conflicts that another layout reduces:
/// a swizzle by the closed-form rule if that removes them, else the best swizzle, or padding if that is better
/// (layout/banks.h). Accesses are those of the first warps in the first iteration of each loop; accesses that depend on
/// data are ignored. Buffers with a layout keep it, and those that TMA copies to or from keep their rows; for copies by
/// a tensor map, the map's swizzle is the only alternative.
std::vector<SharedLayout> choose_shared_layouts(const Kernel& kernel, const Machine& machine);

}  // namespace helve
