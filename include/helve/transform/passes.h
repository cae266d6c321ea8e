// The passes: each is one pure function from a function to a function, in a file of its own name.
// The order in which a target runs them is data (pipeline.h).
#pragma once

#include "helve/dispatch/schedule_table.h"
#include "helve/ir/tensor/function.h"
#include "helve/support/diagnostic.h"
#include "helve/target/machine.h"

namespace helve {

/// What passes know of the target and the user's options.
struct PassOptions {
  const std::vector<TileSchedule>* schedules = &cpu_schedules();  ///< of tile operations
  bool walk_tiles = true;         ///< iterate over elements tile by tile, else in one loop over all
  Machine machine;                ///< that the target runs on
  int64_t persistent_chunk = 1;  ///< iterations of a Persistent loop that share one collective; 0: what memory allows
  bool cores_synchronize = false;  ///< cores can synchronize inside a kernel
  int64_t kept_shared_bytes = 0;  ///< of a block, that stages of pipelined loops leave to later passes
  bool strict_layouts = false;  ///< layout conversions are errors
  int64_t stream_bytes = 0;  ///< of a written tensor that goes around the caches, at least; 0: none does
  std::vector<Diagnostic>* warnings = nullptr;  ///< receives what a pass could not decide; may be null
  /// Receives what make_rings, rotate_products, pipeline_loops, stage_results, pair_tiles, raster_tiles and
  /// lower_tile_ops choose, inner loops first, operations in program order; may be null.
  std::vector<ScheduleChoice>* choices = nullptr;
  bool cores_are_devices = false;  ///< each core is a GPU, with blocks of its own
};

FunctionRef drop_breakpoints(const FunctionRef& f, const PassOptions& options);
FunctionRef pack_elements(const FunctionRef& f, const PassOptions& options);
FunctionRef lower_updates(const FunctionRef& f, const PassOptions& options);
FunctionRef split_mesh_kernels(const FunctionRef& f, const PassOptions& options);
FunctionRef cut_kernels(const FunctionRef& f, const PassOptions& options);
FunctionRef spread_cores(const FunctionRef& f, const PassOptions& options);
FunctionRef stage_collectives(const FunctionRef& f, const PassOptions& options);
FunctionRef version_kernels(const FunctionRef& f, const PassOptions& options);
FunctionRef place_operands(const FunctionRef& f, const PassOptions& options);
FunctionRef join_roles(const FunctionRef& f, const PassOptions& options);
FunctionRef make_rings(const FunctionRef& f, const PassOptions& options);
FunctionRef rotate_products(const FunctionRef& f, const PassOptions& options);
FunctionRef share_fills(const FunctionRef& f, const PassOptions& options);
FunctionRef split_roles(const FunctionRef& f, const PassOptions& options);
FunctionRef stage_results(const FunctionRef& f, const PassOptions& options);
FunctionRef pair_tiles(const FunctionRef& f, const PassOptions& options);
FunctionRef raster_tiles(const FunctionRef& f, const PassOptions& options);
FunctionRef pipeline_loops(const FunctionRef& f, const PassOptions& options);
FunctionRef lower_tile_ops(const FunctionRef& f, const PassOptions& options);
FunctionRef lower_tile_loops(const FunctionRef& f, const PassOptions& options);
FunctionRef lower_block_loops(const FunctionRef& f, const PassOptions& options);
FunctionRef materialize_layouts(const FunctionRef& f, const PassOptions& options);
FunctionRef erase_tiles(const FunctionRef& f, const PassOptions& options);
FunctionRef privatize_scratch(const FunctionRef& f, const PassOptions& options);
FunctionRef distribute_threads(const FunctionRef& f, const PassOptions& options);
FunctionRef partition_loops(const FunctionRef& f, const PassOptions& options);
FunctionRef place_shared_memory(const FunctionRef& f, const PassOptions& options);
FunctionRef narrow_accesses(const FunctionRef& f, const PassOptions& options);
FunctionRef overlap_products(const FunctionRef& f, const PassOptions& options);
FunctionRef insert_barriers(const FunctionRef& f, const PassOptions& options);
FunctionRef allocate_shared(const FunctionRef& f, const PassOptions& options);
FunctionRef insert_fences(const FunctionRef& f, const PassOptions& options);
FunctionRef relax_waits(const FunctionRef& f, const PassOptions& options);
FunctionRef narrow_barriers(const FunctionRef& f, const PassOptions& options);
FunctionRef widen_barriers(const FunctionRef& f, const PassOptions& options);
FunctionRef group_copies(const FunctionRef& f, const PassOptions& options);
FunctionRef expand_collectives(const FunctionRef& f, const PassOptions& options);
FunctionRef place_arrays(const FunctionRef& f, const PassOptions& options);
FunctionRef widen_accesses(const FunctionRef& f, const PassOptions& options);
FunctionRef unpack_pairs(const FunctionRef& f, const PassOptions& options);
FunctionRef simplify_function(const FunctionRef& f, const PassOptions& options);
FunctionRef split_full_tiles(const FunctionRef& f, const PassOptions& options);
FunctionRef trim_loops(const FunctionRef& f, const PassOptions& options);
FunctionRef split_full_blocks(const FunctionRef& f, const PassOptions& options);
FunctionRef vectorize_loops(const FunctionRef& f, const PassOptions& options);
FunctionRef fuse_loops(const FunctionRef& f, const PassOptions& options);
FunctionRef contract_buffers(const FunctionRef& f, const PassOptions& options);
FunctionRef join_blocks(const FunctionRef& f, const PassOptions& options);
FunctionRef legalize_vectors(const FunctionRef& f, const PassOptions& options);
FunctionRef unroll_loops(const FunctionRef& f, const PassOptions& options);
FunctionRef prefetch_reads(const FunctionRef& f, const PassOptions& options);
FunctionRef stream_stores(const FunctionRef& f, const PassOptions& options);
FunctionRef roll_loops(const FunctionRef& f, const PassOptions& options);
FunctionRef outline_parts(const FunctionRef& f, const PassOptions& options);
FunctionRef place_buffers(const FunctionRef& f, const PassOptions& options);

}  // namespace helve
