// Conditions of all TMA schedules that do not depend on addresses.
// Barriers order TMA's accesses with those of the block's own threads, not with those of other cores.
#include "tma_copy.h"

#include <fmt/format.h>

#include "helve/ir/tensor/visit.h"

namespace helve::cuda {

/// Other cores access the memory directly, and the block's barriers do not order that with TMA.
std::string why_no_tma(const LoweringContext& context, const CopyRegions& copy) {
  if (!context.kernel) return "it is outside of kernels";
  std::string reason;
  walk(context.kernel->body, [&](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    if (!op || !op->row().is_collective()) return;
    for (const TileOperand& operand : op->operands) {
      const Region* region = std::get_if<Region>(&operand);
      if (!region || (region->buffer != copy.src.buffer && region->buffer != copy.dst.buffer)) continue;
      reason = fmt::format("cores exchange '{}'", region->buffer->name);
    }
  });
  return reason;
}

Stmt kept(const TileOp& op) {
  if (op.begins_copy() || !is_global(*op.region(0).buffer)) return Stmt(make_ref<TileOp>(op));
  return seq(
      {tile_op(op.op, {op.region(0), op.region(1), false}, op.span), tile_op(TileOpcode::WaitAsync, {}, op.span)});
}

}  // namespace helve::cuda
