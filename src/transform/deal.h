// Which blocks of a grid take which iterations of a Persistent loop.
// The passes that order such loops and deal them to blocks ask one function.
#pragma once

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// Is the last dimension of a Persistent loop the place of a block in its cluster? Then a cluster takes the iterations
/// of the others in turn.
inline bool is_of_clusters(const For& loop, const Kernel* kernel) {
  const int64_t* last = loop.extents.empty() ? nullptr : int_value(loop.extents.back());
  return kernel && kernel->cluster > 1 && loop.vars.size() > 1 && last && *last == kernel->cluster;
}

}  // namespace helve
