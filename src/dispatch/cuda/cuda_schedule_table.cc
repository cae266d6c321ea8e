// The schedules for NVIDIA GPUs.
// Collectives and barriers have none: they stay what they are until code generation.
#include "schedules.h"

namespace helve {

const std::vector<TileSchedule>& cuda_schedules() {
  static const std::vector<TileSchedule> schedules = {
      {TileOpcode::Copy, "matrices", 10, cuda::lower_copy_by_matrices},
      {TileOpcode::Copy, "loop over elements", 0, cuda::lower_copy},
      {TileOpcode::MeshTensorCopy, "loop over elements", 0, cuda::lower_copy},
      {TileOpcode::Fill, "loop over elements", 0, cuda::lower_fill},
      {TileOpcode::Clear, "loop over elements", 0, cuda::lower_fill},
#define REDUCTION(op) {TileOpcode::op, "registers, then lanes, then warps", 0, cuda::lower_reduce},
      REDUCTION(ReduceSum) REDUCTION(ReduceProd) REDUCTION(ReduceMax) REDUCTION(ReduceMin) REDUCTION(ReduceAbsMax)
          REDUCTION(ReduceAny) REDUCTION(ReduceAll)
#undef REDUCTION
      {TileOpcode::LoadMatrix, "matrices", 0, cuda::lower_matrix_move},
      {TileOpcode::StoreMatrix, "matrices", 0, cuda::lower_matrix_move},
      {TileOpcode::Gemm, "products and sums of single elements", 0, cuda::lower_gemm},
  };
  return schedules;
}

}  // namespace helve
