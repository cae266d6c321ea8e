// The memory of other cores, which programs name in lowered form only.
// A target places buffers and orders threads before it expands collectives, so what was expanded before would be left
// out of both.
#include "driver_targets.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"

namespace helve {

void check_lowered_forms(const Function& f) {
  walk(f.body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    const bool lowered = op && (op->op == TileOpcode::StAsync || op->op == TileOpcode::CommWaitBytes);
    if (!lowered && !as<Peer>(s)) return;
    throw UserError(Code::NoSchedule, s->span, {{"operation", op ? operation_text(*op) : "T.peer"}},
                    {{{}, "only lowered programs contain it, which the interpreter runs"}},
                    {"exchange values by collectives, T.comm.all_gather and others"});
  });
}

}  // namespace helve
