// The blocks of a core.
// Without a mesh all dimensions of a grid number blocks.
#include "helve/ir/tensor/core_blocks.h"

#include <algorithm>

namespace helve {

size_t first_block_dim(const Kernel& kernel, const std::optional<MeshShape>& mesh) {
  return mesh ? std::min(mesh->extents.size(), kernel.extents.size()) : 0;
}

bool has_core_blocks(const Kernel& kernel, const std::optional<MeshShape>& mesh) {
  return mesh && kernel.extents.size() > mesh->extents.size();
}

}  // namespace helve
