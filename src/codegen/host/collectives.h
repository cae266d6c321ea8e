// Collectives over Global buffers as steps of the plan.
// The runtime moves strided boxes between cores; the boxes follow from the table of tile operations.
#pragma once

#include <functional>

#include "helve/ir/tensor/function.h"
#include "helve/runtime/plan.h"
#include "host_scalars.h"

namespace helve {

/// The step of a collective of the host body. `id_of` gives a buffer's id in the plan.
runtime::Collective build_collective(const TileOp& op, const MeshShape& mesh, HostScalars& scalars,
                                     const std::function<int64_t(const Buffer&)>& id_of);

}  // namespace helve
