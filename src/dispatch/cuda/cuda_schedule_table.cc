// The schedules for NVIDIA GPUs.
// A copy becomes the instruction that makes it, or a loop over elements; instructions stay what they are where the
// machine has them. Collectives, barriers and waits have no schedules: they stay until code generation.
#include "schedules.h"

namespace helve {

const std::vector<TileSchedule>& cuda_schedules() {
  static const std::vector<TileSchedule> schedules = {
      {TileOpcode::Copy, "ldmatrix", 20, cuda::lower_ldmatrix, OpScope::Block, 75},
      {TileOpcode::Copy, "stmatrix", 10, cuda::lower_stmatrix, OpScope::Block, 90},
      {TileOpcode::Copy, "registers", 0, cuda::lower_copy},
      {TileOpcode::Copy, "cp_async", -10, cuda::lower_cp_async, OpScope::Block, 80},
      {TileOpcode::Copy, "tma", -20, cuda::lower_bulk, OpScope::Block, 90},
      {TileOpcode::Copy, "tma_tensor", -30, cuda::lower_boxes, OpScope::Block, 90},
      {TileOpcode::CopyAsync, "tma", 20, cuda::lower_bulk, OpScope::Block, 90},
      {TileOpcode::CopyAsync, "tma_tensor", 15, cuda::lower_boxes, OpScope::Block, 90},
      {TileOpcode::CopyAsync, "cp_async", 10, cuda::lower_cp_async, OpScope::Block, 80},
      {TileOpcode::CopyAsync, "registers", 0, cuda::lower_copy},
      {TileOpcode::CopyAsync, "cp_async", 10, cuda::lower_run_async, OpScope::Iteration, 80},
      {TileOpcode::CopyAsync, "registers", 0, cuda::lower_run, OpScope::Iteration},
      {TileOpcode::CpAsync, "cp_async", 0, cuda::keep_cp_async, OpScope::Block, 80},
      {TileOpcode::CpAsync, "cp_async", 0, cuda::keep_cp_async, OpScope::Iteration, 80},
      {TileOpcode::CpAsyncBulk, "tma", 0, cuda::keep_bulk, OpScope::Block, 90},
      {TileOpcode::CpAsyncBulkTensor, "tma_tensor", 0, cuda::keep_boxes, OpScope::Block, 90},
      {TileOpcode::MeshTensorCopy, "element loops", 0, cuda::lower_copy},
      {TileOpcode::Fill, "element loops", 0, cuda::lower_fill},
      {TileOpcode::Clear, "element loops", 0, cuda::lower_fill},
#define REDUCTION(op) {TileOpcode::op, "registers, then lanes, then warps", 0, cuda::lower_reduce},
      REDUCTION(ReduceSum) REDUCTION(ReduceProd) REDUCTION(ReduceMax) REDUCTION(ReduceMin) REDUCTION(ReduceAbsMax)
          REDUCTION(ReduceAny) REDUCTION(ReduceAll)
#undef REDUCTION
              {TileOpcode::Cumsum, "registers, then lanes, then warps", 0, cuda::lower_scan},
      {TileOpcode::AtomicAdd, "element loops", 0, cuda::lower_atomic},
      {TileOpcode::AtomicMax, "element loops", 0, cuda::lower_atomic},
      {TileOpcode::AtomicMin, "element loops", 0, cuda::lower_atomic},
      {TileOpcode::LoadMatrix, "ldmatrix", 0, cuda::keep_matrix_move, OpScope::Block, 75},
      {TileOpcode::StoreMatrix, "stmatrix", 0, cuda::keep_matrix_move, OpScope::Block, 90},
      {TileOpcode::Gemm, "products and sums of single elements", 0, cuda::lower_gemm},
      {TileOpcode::Gemm, "mma", -10, cuda::lower_mma, OpScope::Block, 80, cuda::place_mma},
      {TileOpcode::Mma, "mma", 0, cuda::keep, OpScope::Block, 80},
  };
  return schedules;
}

}  // namespace helve
