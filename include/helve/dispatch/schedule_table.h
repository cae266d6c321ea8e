// Which implementation of a tile operation is used, per target.
// An operation has several schedules with priorities; the first that applies lowers it, and if none does, the error
// gives the reason of each.
#pragma once

#include <string>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/function.h"
#include "helve/target/machine.h"

namespace helve {

struct ScheduleChoice;

/// What a schedule may know of the context of the operation.
struct LoweringContext {
  const Function* function = nullptr;  ///< for mesh and placement of tensors
  const Kernel* kernel = nullptr;      ///< the enclosing one: on a mesh its variables are the core's coordinates
  const Facts* facts = nullptr;        ///< about the variables in scope
  const Machine* machine = nullptr;    ///< that the target runs on
  OpScope scope = OpScope::Block;      ///< Iteration: inside an independent loop
  bool asked = false;                  ///< does the operation's `dispatch` name the schedule?
  bool fills_ring = false;             ///< is it a copy for a ring, which only TMA fills?
  std::vector<ScheduleChoice>* choices = nullptr;  ///< receives each choice; may be null
};

/// One implementation of an operation at a scope: statements without operations that have schedules, the operation
/// itself if the target executes it, or the reason for declining.
struct TileSchedule {
  TileOpcode op;
  std::string_view name;  ///< the name for `dispatch`
  int priority;
  Stmt (*lower)(const TileOp& op, const LoweringContext& context, std::string* declined);
  OpScope scope = OpScope::Block;
  int arch = 0;  ///< the oldest architecture of the target that has it
  /// The layouts that the schedule demands of fragments and shared memory without one, before layouts are inferred;
  /// null: none.
  std::vector<std::pair<BufferRef, Layout>> (*place)(const TileOp& op, const Kernel& kernel) = nullptr;
};

/// The choice for one operation, and why schedules with a higher priority declined.
struct ScheduleChoice {
  std::string operation;  ///< "T.copy"
  Span span;
  std::string schedule;
  struct Declined {
    std::string schedule;
    std::string reason;
  };
  std::vector<Declined> declined;
};

/// The schedules of the CPU, highest priority first for each operation.
const std::vector<TileSchedule>& cpu_schedules();

/// The schedules for NVIDIA GPUs. Operations without a row are left to later passes.
const std::vector<TileSchedule>& cuda_schedules();

/// One name for several schedules of an operation. A `dispatch` of it asks for the first member that applies; where a
/// target has none of them, for any of its schedules.
struct ScheduleFamily {
  TileOpcode op;
  std::string_view name;
  std::vector<std::string_view> members;  ///< best first
};
const std::vector<ScheduleFamily>& schedule_families();

/// The names of schedules that the operation's `dispatch` asks for, best first; none without one.
std::vector<std::string_view> requested_schedules(const TileOp& op);

/// BadArgument for a `dispatch` that names a family or schedule of the operation that the target's `schedules` lack:
/// another target's, or an unknown one.
void require_dispatch(const TileOp& op, const std::vector<TileSchedule>& schedules);

/// A schedule, and the layouts that it demands of the operands of an operation.
struct PlacedSchedule {
  const TileSchedule* schedule = nullptr;
  std::vector<std::pair<BufferRef, Layout>> layouts;
};

/// The schedule among those which the operation's `dispatch` names that accepts it with the layouts that it demands;
/// null if none does, or if none is named.
PlacedSchedule asked_schedule(const TileOp& op, const std::vector<TileSchedule>& schedules,
                              const LoweringContext& context);

/// Lowers `op` by the first schedule that accepts it, of those that its `dispatch` names (require_dispatch) if it has
/// one; NoSchedule lists the reasons when none does.
Stmt lower_tile_op(const TileOp& op, const std::vector<TileSchedule>& schedules, const LoweringContext& context);

}  // namespace helve
