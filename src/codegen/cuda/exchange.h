// What a core does in a collective once the sources of its group stand still: it reads them and writes its own
// destination.
// An ordinary loop over threads, so that it is emitted like all other code; only where a member's source lies is the
// emitter's knowledge.
#pragma once

#include <functional>

#include "helve/analysis/core_groups.h"

namespace helve::cuda {

/// The source buffer of a member of the group. What has to be declared before it is used goes to the statements.
using PeerSource = std::function<BufferRef(const Expr& member, std::vector<Stmt>& before)>;

/// The loop for a collective other than a barrier: the destination of T.comm.put changes on one core, all others on
/// every core. Sums run in the order of the members, so that results are those of every other target.
Stmt exchange(const TileOp& op, const CoreGroup& group, const MeshShape& mesh, int64_t threads,
              const PeerSource& source);

}  // namespace helve::cuda
