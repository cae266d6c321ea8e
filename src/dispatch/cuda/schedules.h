// The lowering functions of the schedules for NVIDIA GPUs.
// They produce loops over elements; the loops of a kernel are divided among threads afterwards, all together.
#pragma once

#include "helve/dispatch/schedule_table.h"

namespace helve::cuda {

#define HELVE_SCHEDULE(op, name, priority, lower, ...) \
  Stmt lower(const TileOp& op, const LoweringContext& context, std::string* declined);
#define HELVE_PLACED_SCHEDULE(op, name, priority, lower, place, ...) \
  HELVE_SCHEDULE(op, name, priority, lower, )                        \
  std::vector<std::pair<BufferRef, Layout>> place(const TileOp& op, const Kernel& kernel);
#include "cuda_schedules.inc"
#undef HELVE_PLACED_SCHEDULE
#undef HELVE_SCHEDULE

}  // namespace helve::cuda
