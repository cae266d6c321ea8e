// Blocks of a cluster fill slots of their rings for each other.
// Input: the program of the threads of a block, whose rings are filled and taken in one sequence. Output: in kernels of
// clusters, copies for a ring whose source is the same in all blocks of a cluster are made by these together, each a
// part for all; the ring's slots are given back to all of them. The blocks wait for each other before the first copy,
// and before they end. A ring is shared only where all blocks of a cluster have the same events of it; analysis/rings.h
// proves that of the result.
// Before:  T.mbarrier_init(ring)                    After:  T.mbarrier_init(ring)
//          ...                                              T.sync_cluster()
//          T.cp_async_bulk_tensor(B[...], b,                T.cp_async_bulk_tensor(B[...], b, barriers=ring,
//                                 barriers=ring)                                   multicast=2)
//          T.ring_release(ring)                             T.ring_release(ring, cluster=True)
//                                                           T.sync_cluster()
#include "helve/analysis/box_copy.h"
#include "helve/analysis/cluster.h"
#include "helve/analysis/early_copies.h"
#include "helve/analysis/rings.h"
#include "helve/ir/tensor/ring.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

TileOp with_operand(const TileOp& op, const char* name, TileOperand value) {
  TileOp out = op;
  out.operands[op.row().index_of(name)] = std::move(value);
  return out;
}

Stmt with_shared_rings(const Stmt& s, const Kernel& kernel) {
  const ClusterFacts facts = cluster_facts(kernel);
  std::unordered_set<const Buffer*> rings;
  const auto together = [&](const TileOp& op) {
    const Region* barriers = op.barriers();
    return op.op == TileOpcode::CpAsyncBulkTensor && barriers && is_ring(*barriers->buffer) &&
           facts.same.contains(&op) && !facts.uneven.contains(barriers->buffer.get()) &&
           shared_boxes(op, kernel.cluster).has_value();
  };
  walk(kernel.body, [&](const Stmt& each) {
    const TileOp* op = as<TileOp>(each);
    if (op && together(*op)) rings.insert(op->barriers()->buffer.get());
  });
  if (rings.empty()) return s;
  std::vector<Stmt> body = statements_of(rewrite(kernel.body, [&](const Stmt& each) -> Stmt {
    const TileOp* op = as<TileOp>(each);
    if (!op) return each;
    if (together(*op)) return Stmt(make_ref<TileOp>(with_operand(*op, "multicast", kernel.cluster)));
    if (op->op != TileOpcode::RingRelease || !rings.contains(op->barriers()->buffer.get())) return each;
    return Stmt(make_ref<TileOp>(with_operand(*op, "cluster", true)));
  }));
  const Stmt barrier = tile_op(TileOpcode::SyncCluster, {}, kernel.span);
  body.insert(body.begin() + static_cast<std::ptrdiff_t>(common_statements(body)), barrier);
  body.push_back(barrier);
  return Stmt(copy_with(kernel, [&](Kernel& out) { out.body = seq(std::move(body), kernel.body->span); }));
}

}  // namespace

FunctionRef share_fills(const FunctionRef& f, const PassOptions& options) {
  return with_body(f, rewrite(f->body, [&](const Stmt& s) -> Stmt {
                     const Kernel* kernel = as<Kernel>(s);
                     if (!kernel || kernel->cluster == 1 || kernel->cluster > options.machine.cluster_blocks) return s;
                     return has_roles(*kernel) || has_shared_rings(s) ? s : with_shared_rings(s, *kernel);
                   }));
}

}  // namespace helve
