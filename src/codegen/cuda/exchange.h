// A core's part of a collective, between the barriers of its group: it reads the members' sources and writes its own
// destination.
// This is an ordinary loop over threads, emitted like all other code; only the emitter knows where a member's source
// is.
#pragma once

#include <functional>

#include "helve/analysis/core_groups.h"

namespace helve::cuda {

/// The source buffer of a member of the group. Declarations that it needs are appended to the statements.
using PeerSource = std::function<BufferRef(const Expr& member, std::vector<Stmt>& before)>;

/// The loop for a collective other than a barrier: T.comm.put changes the destination of one core, all others that of
/// every core. Sums are in the order of the members, so that results equal those of other targets.
Stmt exchange(const TileOp& op, const CoreGroup& group, const MeshShape& mesh, int64_t threads,
              const PeerSource& source);

}  // namespace helve::cuda
