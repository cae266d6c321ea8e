// The schedules of the CPU, as data.
// The rows are in cpu_schedules.inc, which also declares the functions.
#include "schedules.h"

namespace helve {

/// One thread runs the block statement by statement, so everything before is complete and visible.
Stmt cpu::lower_order(const TileOp&, const LoweringContext&, std::string*) { return seq({}); }

const std::vector<TileSchedule>& cpu_schedules() {
  static const std::vector<TileSchedule> schedules = {
#define HELVE_SCHEDULE(op, name, priority, lower, ...) \
  {TileOpcode::op, name, priority, cpu::lower __VA_OPT__(, ) __VA_ARGS__},
#include "cpu_schedules.inc"
#undef HELVE_SCHEDULE
  };
  return schedules;
}

}  // namespace helve
