// What the blocks of a cluster have in common.
// The blocks of a cluster differ in one number, their place in it: neighbours along the last dimension of the grid.
// What does not depend on it is the same in all of them. Values of memory count as different.
#pragma once

#include <unordered_set>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// Of a kernel, with the place of a block in its cluster left open.
struct ClusterFacts {
  std::unordered_set<const TileOp*> same;  ///< copies by TMA whose sources are the same region in all blocks
  std::unordered_set<const Buffer*> uneven;  ///< rings of which the blocks may have different events
};

ClusterFacts cluster_facts(const Kernel& kernel);

}  // namespace helve
