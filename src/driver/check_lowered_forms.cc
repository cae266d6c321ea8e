// The memory of other cores and the blocks of a core, which programs name in lowered form only.
// A target places buffers and orders threads before it expands collectives, so what was expanded before would be left
// out of both; and no proof knows which blocks are of one core.
#include "driver_targets.h"
#include "helve/ir/tensor/core_blocks.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

void check_lowered_forms(const Function& f) {
  walk(f.body, [&](const Stmt& s) {
    if (const Kernel* kernel = as<Kernel>(s); kernel && has_core_blocks(*kernel, f.mesh)) {
      throw UserError(Code::NoSchedule, s->span, {{"operation", "T.Kernel with blocks of a core"}},
                      {{{}, "only lowered programs contain it, which the interpreter runs"}},
                      {"give the grid of the mesh, and loop over the rest by T.Persistent"});
    }
    const TileOp* op = as<TileOp>(s);
    const bool lowered = op && (op->op == TileOpcode::StAsync || op->op == TileOpcode::CommWaitBytes);
    if (!lowered && !as<Peer>(s)) return;
    throw UserError(Code::NoSchedule, s->span, {{"operation", op ? operation_text(*op) : "T.peer"}},
                    {{{}, "only lowered programs contain it, which the interpreter runs"}},
                    {"exchange values by collectives, T.comm.all_gather and others"});
  });
}

}  // namespace helve
