// Barriers of warpgroups in the place of barriers of the block.
// Input: the program of the threads of a block, with its barriers and fences and with places for its shared memory.
// Output: the same with T.sync_warpgroups in the place of each barrier that orders threads of one warpgroup alone, in
// kernels where several warpgroups start copies. Where one warpgroup stores what it has summed, the others go on.
//
// Before:  T.stmatrix(rounded[:, 0:64], staged, layout=...)       After:  T.stmatrix(rounded[:, 0:64], staged, ...)
//          T.fence_async()                                                T.fence_async()
//          T.sync_threads()                                               T.sync_warpgroups()
//          T.cp_async_bulk_tensor(staged[0:64, :], C[i:i + 64, ...])      T.cp_async_bulk_tensor(...)
//          T.cp_async_bulk_tensor(staged[64:128, :], ..., warpgroup=1)    T.cp_async_bulk_tensor(..., warpgroup=1)
#include "helve/analysis/barriers.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/ir/tensor/visit.h"
#include "helve/layout/warp.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

/// Have two buffers of shared memory bytes in common? A barrier may then order accesses to different buffers.
bool shares_bytes(const Kernel& kernel) {
  std::vector<std::pair<int64_t, int64_t>> places;
  bool known = true;
  walk(kernel.body, [&](const Stmt& s) {
    const Alloc* n = as<Alloc>(s);
    if (!n || n->buffer->scope != MemoryScope::Shared) return;
    known &= n->buffer->offset.has_value();
    if (known) places.emplace_back(*n->buffer->offset, *n->buffer->offset + shared_size(*n->buffer));
  });
  std::sort(places.begin(), places.end());
  for (size_t i = 1; i < places.size(); ++i) known &= places[i - 1].second <= places[i].first;
  return !known;
}

}  // namespace

FunctionRef narrow_barriers(const FunctionRef& f, const PassOptions&) {
  return with_body(f, rewrite(f->body, [&](const Stmt& s) -> Stmt {
                     const Kernel* kernel = as<Kernel>(s);
                     if (!kernel || kernel->threads % kWarpgroup != 0 || shares_bytes(*kernel)) return s;
                     const auto of_another = [](const TileOp& op) { return op.warpgroup() > 0; };
                     if (!has_operation(kernel->body, of_another)) return s;
                     return Stmt(with_warpgroup_barriers(f, Ref<const Kernel>(kernel)));
                   }));
}

/// What a lowered program says of warpgroups is found again.
FunctionRef widen_barriers(const FunctionRef& f, const PassOptions&) {
  return with_body(f, rewrite(f->body, [](const Stmt& s) -> Stmt {
                     const TileOp* op = as<TileOp>(s);
                     if (!op || op->op != TileOpcode::SyncWarpgroups) return s;
                     return tile_op(TileOpcode::SyncThreads, {}, s->span);
                   }));
}

}  // namespace helve
