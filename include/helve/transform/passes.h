// The passes: each is one pure function from a function to a function, in a file of its own name.
// The order in which a target runs them is data (pipeline.h).
#pragma once

#include "helve/dispatch/schedule_table.h"
#include "helve/ir/tensor/function.h"
#include "helve/support/diagnostic.h"
#include "helve/target/machine.h"

namespace helve {

/// What a pass may be told about the target and by the user.
struct PassOptions {
  const std::vector<TileSchedule>* schedules = &cpu_schedules();  ///< of the tile operations
  bool walk_tiles = true;         ///< elements are walked tile by tile, else in one loop over all
  Machine machine;                ///< that the target runs on
  int64_t persistent_chunk = 1;   ///< iterations of a Persistent loop that share one collective
  bool cores_meet = false;        ///< cores can wait for each other inside a kernel
  bool strict_layouts = false;    ///< a fragment with a layout that an operation needs otherwise is an error
  std::vector<Diagnostic>* warnings = nullptr;  ///< takes what a pass could not decide; null: nobody asks
};

FunctionRef split_mesh_kernels(const FunctionRef& f, const PassOptions& options);
FunctionRef stage_collectives(const FunctionRef& f, const PassOptions& options);
FunctionRef place_operands(const FunctionRef& f, const PassOptions& options);
FunctionRef pipeline_loops(const FunctionRef& f, const PassOptions& options);
FunctionRef lower_tile_ops(const FunctionRef& f, const PassOptions& options);
FunctionRef lower_tile_loops(const FunctionRef& f, const PassOptions& options);
FunctionRef lower_block_loops(const FunctionRef& f, const PassOptions& options);
FunctionRef materialize_tiles(const FunctionRef& f, const PassOptions& options);
FunctionRef erase_tiles(const FunctionRef& f, const PassOptions& options);
FunctionRef privatize_scratch(const FunctionRef& f, const PassOptions& options);
FunctionRef distribute_threads(const FunctionRef& f, const PassOptions& options);
FunctionRef partition_loops(const FunctionRef& f, const PassOptions& options);
FunctionRef place_shared_memory(const FunctionRef& f, const PassOptions& options);
FunctionRef insert_barriers(const FunctionRef& f, const PassOptions& options);
FunctionRef simplify_function(const FunctionRef& f, const PassOptions& options);
FunctionRef split_full_blocks(const FunctionRef& f, const PassOptions& options);
FunctionRef vectorize_loops(const FunctionRef& f, const PassOptions& options);
FunctionRef fuse_loops(const FunctionRef& f, const PassOptions& options);
FunctionRef contract_buffers(const FunctionRef& f, const PassOptions& options);
FunctionRef join_blocks(const FunctionRef& f, const PassOptions& options);

/// What pipeline_loops makes of the pipelined loops of its input, inner ones first.
std::vector<ScheduleChoice> pipeline_choices(const FunctionRef& f, const PassOptions& options);

/// What lower_tile_ops chooses for the operations of its input, in program order.
std::vector<ScheduleChoice> schedule_choices(const FunctionRef& f, const PassOptions& options);

}  // namespace helve
