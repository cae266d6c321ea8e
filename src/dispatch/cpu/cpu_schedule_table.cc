// The schedules of the CPU, as data.
// The rows stand in cpu_schedules.inc, which declares the functions, too.
#include "schedules.h"

namespace helve {

/// One thread runs the block, statement by statement: all that came before is done and visible.
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
