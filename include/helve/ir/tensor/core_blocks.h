// The blocks of a core: a grid behind the mesh.
// In a lowered program a core that is a GPU has blocks of its own; who reads a grid asks here which dimensions are
// whose.
#pragma once

#include <optional>

#include "helve/ir/tensor/function.h"

namespace helve {

/// The first dimension of a kernel's grid that numbers blocks: behind those of the mesh, which number cores.
size_t first_block_dim(const Kernel& kernel, const std::optional<MeshShape>& mesh);

/// Has a core of the mesh blocks of its own in this kernel? They share the core's instances of Global buffers.
bool has_core_blocks(const Kernel& kernel, const std::optional<MeshShape>& mesh);

}  // namespace helve
