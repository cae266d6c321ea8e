// The order of the passes, for each target.
// Read from top to bottom, it is the compiler.
#include "helve/transform/pipeline.h"

#include <fmt/format.h>

#include <chrono>
#include <exception>

#include "helve/ir/tensor/verify.h"
#include "helve/support/cancel.h"
#include "helve/support/diagnostic.h"

namespace helve {

const std::vector<Pass>& cpu_pipeline() {
  static const std::vector<Pass> passes = {
      {"drop_breakpoints", drop_breakpoints},  // only the interpreter stops
      {"widen_barriers", widen_barriers},          // barriers are those of the block
      {"join_roles", join_roles},                  // roles of a lowered program become one sequence
      {"lower_updates", lower_updates},            // T.update becomes a store of the old value and the new one
      {"pack_elements", pack_elements},            // elements of which two share a byte become bytes
      {"split_mesh_kernels", split_mesh_kernels},  // collectives move to the host body, kernels become phases
      {"privatize_scratch", privatize_scratch},    // what iterations use as scratch becomes each one's own
      {"lower_tile_ops", lower_tile_ops},          // copy, fill, gemm, reduce become element loops
      {"lower_tile_loops", lower_tile_loops},      // tile statements become element loops
      {"lower_block_loops", lower_block_loops},    // Persistent and Pipelined become serial
      {"materialize_layouts", materialize_layouts},  // buffers with tiles or a layout become plain ones, in its order
      {"simplify", simplify_function},  // addresses lose their divisions
      {"split_full_tiles", split_full_tiles},  // tiles of a schedule that need no guard get code of their own
      {"trim_loops", trim_loops},  // and loops of the others end where their guards do
      {"split_full_blocks", split_full_blocks},  // blocks without a tail get code of their own
      {"simplify", simplify_function},
      {"vectorize_loops", vectorize_loops},  // innermost parallel loops become vectors and a tail
      {"simplify", simplify_function},
      {"fuse_loops", fuse_loops},  // neighbouring loops over one range become one
      {"contract_buffers", contract_buffers},  // values that are used where they are made need no buffer
      {"fuse_loops", fuse_loops},
      {"join_blocks", join_blocks},  // blocks that traverse short rows do so together
      {"legalize_vectors", legalize_vectors},  // vectors that a processor executes, else plain loops
      {"unroll_loops", unroll_loops},  // copies of their bodies
      {"prefetch_reads", prefetch_reads},  // rows that are read soon are asked for
      {"stream_stores", stream_stores},  // large tensors are written around the caches
      {"roll_loops", roll_loops},  // loops over wide vectors stay loops
      {"outline_parts", outline_parts},  // long sequences become functions of their own
      {"place_buffers", place_buffers},  // small buffers of a block stand on the stack
  };
  return passes;
}

const std::vector<Pass>& cuda_pipeline() {
  static const std::vector<Pass> passes = {
      {"drop_breakpoints", drop_breakpoints},  // only the interpreter stops
      {"widen_barriers", widen_barriers},  // barriers are those of the block
      {"join_roles", join_roles},  // roles of a lowered program become one sequence
      {"lower_updates", lower_updates},  // T.update becomes a store of the old value and the new one
      {"pack_elements", pack_elements},  // elements of which two share a byte become bytes
      {"split_mesh_kernels", split_mesh_kernels},  // collectives that memory decides about move to the host body
      {"cut_kernels", cut_kernels},  // where cores are GPUs, every loop over iterations is a kernel
      {"spread_cores", spread_cores},  // where cores are GPUs, their iterations become blocks
      {"lower_tile_loops", lower_tile_loops},  // tile statements become loops over elements
      {"erase_tiles", erase_tiles},  // buffers keep their logical shape, registers have no order
      {"version_kernels", version_kernels},  // one for rows that begin at multiples of vectors, one for any
      {"place_operands", place_operands},  // fragments get the layouts that schedules demand
      {"make_rings", make_rings},  // copies of pipelined loops around products fill rings
      {"rotate_products", rotate_products},  // the next first product begins before the last one
      {"pipeline_loops", pipeline_loops},  // copies of pipelined loops begin early
      {"stage_results", stage_results},  // sums of tensor cores leave through shared memory
      {"pair_tiles", pair_tiles},  // blocks of a cluster have neighbouring tiles
      {"raster_tiles", raster_tiles},  // tiles that run at one time lie together
      {"lower_block_loops", lower_block_loops},  // Persistent and Pipelined become serial
      {"stage_collectives", stage_collectives},  // sources of the others stand where their group reads them
      {"lower_tile_ops", lower_tile_ops},  // copy, fill, gemm become loops over elements
      {"simplify", simplify_function},
      {"privatize_scratch", privatize_scratch},  // what iterations use as scratch becomes each one's own
      {"distribute_threads", distribute_threads},  // loops and reductions become the program of a thread
      {"simplify", simplify_function},
      {"place_shared_memory", place_shared_memory},  // shared memory gets layouts without bank conflicts
      {"partition_loops", partition_loops},  // loops are cut where a condition on their variable changes
      {"overlap_products", overlap_products},  // products are waited for where something touches what they use
      {"insert_barriers", insert_barriers},  // threads that touch one element wait for each other
      {"allocate_shared", allocate_shared},  // buffers that are never used at once share bytes
      {"insert_fences", insert_fences},  // TMA sees what threads wrote
      {"relax_waits", relax_waits},  // memory that TMA stores from is free as soon as TMA has read it
      {"narrow_barriers", narrow_barriers},  // barriers of warpgroups where no two warpgroups meet
      {"group_copies", group_copies},  // mbarriers and groups count copies, as the machine has them
      {"expand_collectives", expand_collectives},  // cores read and write each other's memory
      {"place_arrays", place_arrays},  // threads keep arrays in registers, packed or not, or in memory
      {"widen_accesses", widen_accesses},  // lanes access memory together
      {"unpack_pairs", unpack_pairs},  // both int4 of a byte are converted by one instruction
      {"share_fills", share_fills},  // blocks of a cluster copy for each other
      {"split_roles", split_roles},  // one role fills the rings, the other one takes
  };
  return passes;
}

FunctionRef run_pipeline(const std::vector<Pass>& passes, FunctionRef f, const PassOptions& options,
                         const std::vector<PassInstrument*>& instruments) {
  using Clock = std::chrono::steady_clock;
  for (const Pass& pass : passes) {
    throw_if_cancelled();
    const Clock::time_point start = Clock::now();
    FunctionRef after = pass.run(f, options);
    const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
    for (PassInstrument* instrument : instruments) instrument->ran(pass, f, after, seconds);
    f = std::move(after);
  }
  return f;
}

void VerifyInstrument::ran(const Pass& pass, const FunctionRef& before, const FunctionRef& after, double) {
  if (before == after) return;
  try {
    verify(after);
  } catch (const std::exception& error) {
    HELVE_FAIL(fmt::format("pass '{}' made a function that does not verify: {}", pass.name, error.what()));
  }
}

void TimeInstrument::ran(const Pass& pass, const FunctionRef& before, const FunctionRef& after, double seconds) {
  rows_.push_back({pass.name, seconds, before != after});
}

void StageInstrument::ran(const Pass& pass, const FunctionRef& before, const FunctionRef& after, double) {
  stages_.push_back({pass.name, after, before != after});
}

}  // namespace helve
