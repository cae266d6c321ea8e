// The schedules of the CPU.
// Collectives have none: they are split out of kernels and run by the host plan.
#include <fmt/format.h>

#include <algorithm>

#include "helve/support/diagnostic.h"
#include "schedules.h"

namespace helve {

const std::vector<TileSchedule>& cpu_schedules() {
  static const std::vector<TileSchedule> schedules = {
      {TileOpcode::Copy, "element loops", 0, cpu::lower_copy},
      {TileOpcode::MeshTensorCopy, "element loops", 0, cpu::lower_mesh_tensor_copy},
      {TileOpcode::Fill, "element loops", 0, cpu::lower_fill},
      {TileOpcode::Clear, "element loops", 0, cpu::lower_fill},
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

Stmt lower_tile_op(const TileOp& op, const std::vector<TileSchedule>& schedules, const LoweringContext& context) {
  std::vector<const TileSchedule*> fitting;
  for (const TileSchedule& s : schedules) {
    if (s.op == op.op) fitting.push_back(&s);
  }
  std::stable_sort(fitting.begin(), fitting.end(),
                   [](const TileSchedule* a, const TileSchedule* b) { return a->priority > b->priority; });
  std::vector<Note> reasons;
  for (const TileSchedule* s : fitting) {
    std::string declined;
    if (Stmt lowered = s->lower(op, context, &declined)) return lowered;
    reasons.push_back({{}, fmt::format("'{}' declined: {}", s->name, declined)});
  }
  throw UserError(Code::NoSchedule, op.span, {{"operation", std::string(op.row().python)}}, std::move(reasons));
}

}  // namespace helve
