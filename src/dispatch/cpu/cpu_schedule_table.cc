// The schedules of the CPU.
// Collectives have none: they are split out of kernels and run by the host plan.
#include "schedules.h"

namespace helve {

/// One thread runs the block, statement by statement: all that came before is done and visible.
Stmt cpu::lower_order(const TileOp&, const LoweringContext&, std::string*) { return seq({}); }

const std::vector<TileSchedule>& cpu_schedules() {
  static const std::vector<TileSchedule> schedules = {
      {TileOpcode::Copy, "element loops", 0, cpu::lower_copy},
      {TileOpcode::CopyAsync, "element loops", 0, cpu::lower_copy},
      {TileOpcode::CopyAsync, "element loops", 0, cpu::lower_copy, OpScope::Iteration},
      {TileOpcode::CpAsync, "element loops", 0, cpu::lower_copy},
      {TileOpcode::CpAsync, "element loops", 0, cpu::lower_copy, OpScope::Iteration},
      {TileOpcode::CpAsyncBulk, "element loops", 0, cpu::lower_copy},
      {TileOpcode::CpAsyncBulkTensor, "element loops", 0, cpu::lower_copy},
      {TileOpcode::MeshTensorCopy, "element loops", 0, cpu::lower_mesh_tensor_copy},
      {TileOpcode::Fill, "element loops", 0, cpu::lower_fill},
      {TileOpcode::Clear, "element loops", 0, cpu::lower_fill},
      {TileOpcode::CommitAsync, "order of the program", 0, cpu::lower_order},
      {TileOpcode::WaitAsync, "order of the program", 0, cpu::lower_order},
      {TileOpcode::SyncThreads, "order of the program", 0, cpu::lower_order},
      {TileOpcode::LoadMatrix, "element loops", 0, cpu::lower_matrix_move},
      {TileOpcode::StoreMatrix, "element loops", 0, cpu::lower_matrix_move},
      {TileOpcode::Mma, "element loops", 0, cpu::lower_matrix_product},
      {TileOpcode::Gemm, "register blocks over packed panels", 10, cpu::lower_gemm_blocks},
      {TileOpcode::Gemm, "rows of C in an accumulator", 0, cpu::lower_gemm},
#define REDUCTION(op)                                                             \
  {TileOpcode::op, "lanes along the last dimension", 10, cpu::lower_reduce_rows}, \
      {TileOpcode::op, "columns side by side", 0, cpu::lower_reduce_columns},     \
      {TileOpcode::op, "one result after the other", -10, cpu::lower_reduce_elements},
      REDUCTION(ReduceSum) REDUCTION(ReduceProd) REDUCTION(ReduceMax) REDUCTION(ReduceMin) REDUCTION(ReduceAbsMax)
          REDUCTION(ReduceAny) REDUCTION(ReduceAll)
#undef REDUCTION
              {TileOpcode::Cumsum, "columns side by side", 10, cpu::lower_scan_columns},
      {TileOpcode::Cumsum, "one line after the other", 0, cpu::lower_scan_elements},
      {TileOpcode::AtomicAdd, "element loops", 0, cpu::lower_atomic},
      {TileOpcode::AtomicMax, "element loops", 0, cpu::lower_atomic},
      {TileOpcode::AtomicMin, "element loops", 0, cpu::lower_atomic},
  };
  return schedules;
}

}  // namespace helve
