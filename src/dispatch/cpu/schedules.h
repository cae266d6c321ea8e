// The lowering functions of the CPU schedules.
// One file per operation family; only the table in cpu_schedule_table.cc uses them.
#pragma once

#include "helve/dispatch/schedule_table.h"

namespace helve::cpu {

#define HELVE_SCHEDULE(op, name, priority, lower, ...) \
  Stmt lower(const TileOp& op, const LoweringContext& context, std::string* declined);
#include "cpu_schedules.inc"
#undef HELVE_SCHEDULE

}  // namespace helve::cpu
