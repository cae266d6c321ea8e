// The schedules for NVIDIA GPUs.
// Reductions have none here: they are divided among threads with the loops around them, by the layout of their source. Collectives
// and barriers stay what they are until code generation.
#include "schedules.h"

namespace helve {

const std::vector<TileSchedule>& cuda_schedules() {
  static const std::vector<TileSchedule> schedules = {
      {TileOpcode::Copy, "loop over elements", 0, cuda::lower_copy},
      {TileOpcode::MeshTensorCopy, "loop over elements", 0, cuda::lower_copy},
      {TileOpcode::Fill, "loop over elements", 0, cuda::lower_fill},
      {TileOpcode::Clear, "loop over elements", 0, cuda::lower_fill},
      {TileOpcode::Gemm, "products and sums of single elements", 0, cuda::lower_gemm},
  };
  return schedules;
}

}  // namespace helve
