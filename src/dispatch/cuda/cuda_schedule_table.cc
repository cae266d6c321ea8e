// The schedules for NVIDIA GPUs, as data.
// The rows are in cuda_schedules.inc, which also declares the functions.
#include "schedules.h"

namespace helve {

const std::vector<TileSchedule>& cuda_schedules() {
  static const std::vector<TileSchedule> schedules = {
#define HELVE_SCHEDULE(op, name, priority, lower, ...) \
  {TileOpcode::op, name, priority, cuda::lower __VA_OPT__(, ) __VA_ARGS__},
#define HELVE_PLACED_SCHEDULE(op, name, priority, lower, place, scope, arch) \
  {TileOpcode::op, name, priority, cuda::lower, scope, arch, cuda::place},
#include "cuda_schedules.inc"
#undef HELVE_PLACED_SCHEDULE
#undef HELVE_SCHEDULE
  };
  return schedules;
}

}  // namespace helve
