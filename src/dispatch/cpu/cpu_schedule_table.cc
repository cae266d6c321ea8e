// The schedules of the CPU.
// Collectives have none: they are split out of kernels and run by the host plan.
#include <fmt/format.h>

#include <algorithm>

#include "helve/ir/expr/visit.h"
#include "helve/support/diagnostic.h"
#include "schedules.h"
#include "stage_operands.h"

namespace helve {

/// One thread runs the block, statement by statement: all that came before is visible.
Stmt cpu::lower_sync_threads(const TileOp&, const LoweringContext&, std::string*) { return seq({}); }

const std::vector<TileSchedule>& cpu_schedules() {
  static const std::vector<TileSchedule> schedules = {
      {TileOpcode::Copy, "element loops", 0, cpu::lower_copy},
      {TileOpcode::MeshTensorCopy, "element loops", 0, cpu::lower_mesh_tensor_copy},
      {TileOpcode::Fill, "element loops", 0, cpu::lower_fill},
      {TileOpcode::Clear, "element loops", 0, cpu::lower_fill},
      {TileOpcode::SyncThreads, "order of the program", 0, cpu::lower_sync_threads},
      {TileOpcode::LoadMatrix, "element loops", 0, cpu::lower_matrix_move},
      {TileOpcode::StoreMatrix, "element loops", 0, cpu::lower_matrix_move},
      {TileOpcode::Gemm, "register blocks over packed panels", 10, cpu::lower_gemm_blocks},
      {TileOpcode::Gemm, "rows of C in an accumulator", 0, cpu::lower_gemm},
#define REDUCTION(op)                                                         \
  {TileOpcode::op, "lanes along the last dimension", 10, cpu::lower_reduce_rows}, \
      {TileOpcode::op, "columns side by side", 0, cpu::lower_reduce_columns},     \
      {TileOpcode::op, "one result after the other", -10, cpu::lower_reduce_elements},
      REDUCTION(ReduceSum) REDUCTION(ReduceProd) REDUCTION(ReduceMax) REDUCTION(ReduceMin) REDUCTION(ReduceAbsMax)
          REDUCTION(ReduceAny) REDUCTION(ReduceAll)
#undef REDUCTION
  };
  return schedules;
}

namespace {

/// The operation with a name for each scalar that reads memory: operands are evaluated once, before anything is written.
Ref<const TileOp> with_scalars_named(const TileOp& op, std::vector<Stmt>* binds) {
  Ref<TileOp> out = make_ref<TileOp>(op);
  const auto settle = [&](Expr& e) {
    if (!has_load(e)) return;
    VarRef value = make_var("value", e->dtype);
    binds->push_back(bind(value, e));
    e = Expr(value);
  };
  for (TileOperand& operand : out->operands) {
    if (Expr* e = std::get_if<Expr>(&operand)) settle(*e);
    if (std::vector<Expr>* items = std::get_if<std::vector<Expr>>(&operand)) std::for_each(items->begin(), items->end(), settle);
    if (Region* region = std::get_if<Region>(&operand)) {
      for (Range& range : region->ranges) {
        settle(range.begin);
        settle(range.extent);
      }
    }
  }
  return out;
}

}  // namespace

Stmt lower_tile_op(const TileOp& op, const std::vector<TileSchedule>& schedules, const LoweringContext& context) {
  std::vector<const TileSchedule*> fitting;
  for (const TileSchedule& s : schedules) {
    if (s.op == op.op) fitting.push_back(&s);
  }
  std::stable_sort(fitting.begin(), fitting.end(),
                   [](const TileSchedule* a, const TileSchedule* b) { return a->priority > b->priority; });
  std::vector<Stmt> body;
  const Ref<const TileOp> settled = with_scalars_named(op, &body);
  std::vector<Note> reasons;
  if (context.function) {
    const std::vector<Stmt> parts = stage_operands(*settled, *context.function, &reasons);
    for (const Stmt& part : parts) {
      const TileOp* inner = as<TileOp>(part);
      body.push_back(inner ? lower_tile_op(*inner, schedules, context) : part);
    }
    if (!parts.empty()) return seq(std::move(body), op.span);
    if (!reasons.empty()) fitting.clear();
  }
  for (const TileSchedule* s : fitting) {
    std::string declined;
    if (Stmt lowered = s->lower(*settled, context, &declined)) {
      body.push_back(lowered);
      return seq(std::move(body), op.span);
    }
    reasons.push_back({{}, fmt::format("'{}' declined: {}", s->name, declined)});
  }
  throw UserError(Code::NoSchedule, op.span, {{"operation", fmt::format("T.{}", op.row().python)}}, std::move(reasons));
}

}  // namespace helve
