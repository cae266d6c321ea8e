// Does the target have the implementations that the program requests?
// A request is never ignored, so a program with `dispatch=` is for targets that have the implementation; the
// interpreter has none.
#include "driver_targets.h"
#include "helve/dispatch/schedule_table.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

const std::vector<TileSchedule>& schedules_of(Target target) {
  static const std::vector<TileSchedule> none;
  switch (target) {
    case Target::Interp: return none;
    case Target::Llvm: return cpu_schedules();
    case Target::Cuda: return cuda_schedules();
  }
  __builtin_unreachable();
}

}  // namespace

void check_dispatch(const Function& f, Target target) {
  walk(f.body, [&](const Stmt& s) {
    if (const TileOp* op = as<TileOp>(s)) require_dispatch(*op, schedules_of(target));
  });
}

}  // namespace helve
