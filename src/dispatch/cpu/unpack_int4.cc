// Bytes of int4 on the CPU: one half after the other, or as lanes of a vector.
// The processor has no instruction for it.
#include "unpack_int4.h"

#include "schedules.h"

namespace helve {

Stmt cpu::lower_unpack_int4(const TileOp& op, const LoweringContext&, std::string*) {
  return unpacked_halves(op, LoopKind::Parallel);
}

}  // namespace helve
