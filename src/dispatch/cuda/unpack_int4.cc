// Bytes of int4 on a GPU: a loop until registers and memory have their places, then unpack_pairs chooses again.
// Of a thread it is the lanes of a vector; of the block a loop that is divided among threads as others are.
#include "unpack_int4.h"

#include "schedules.h"

namespace helve {

Stmt cuda::lower_unpack_int4(const TileOp& op, const LoweringContext& context, std::string*) {
  return unpacked_halves(op, context.scope == OpScope::Iteration ? LoopKind::Vectorized : LoopKind::Parallel);
}

}  // namespace helve
