// Barriers of warpgroups.
// A barrier of the block that all pairs of threads of different warpgroups can do without orders only threads of one:
// such barriers are found like superfluous ones. A fence before it must be needed by no such pair either, since what
// follows another barrier would not be ordered behind the fence.
#include <set>

#include "drop.h"
#include "helve/ir/tensor/visit.h"
#include "run.h"

namespace helve {

using namespace barriers;

namespace {

/// Calls `f` for each T.sync_threads and whether a fence is in front of it.
void for_each_barrier(Part& part, const std::function<void(Part& barrier, bool fenced)>& f) {
  const Part* before = nullptr;
  for (const PartRef& each : part.parts) {
    const TileOp* op = before && before->stmt ? as<TileOp>(before->stmt) : nullptr;
    if (is_sync_threads(*each)) f(*each, op && op->op == TileOpcode::FenceAsync);
    for_each_barrier(*each, f);
    before = each.get();
  }
}

/// Of the barriers that are `tried`, those without which threads of different warpgroups do not conflict.
class Narrowing {
 public:
  Narrowing(const FunctionRef& f, const Kernel& kernel, AccessTable& table, Part& parts)
      : function_(f), kernel_(kernel), table_(table), parts_(parts) {}

  std::set<const Part*> of(Separator separator, const std::function<bool(const Part&)>& tried) {
    ConflictQueries conflicts(function_, table_, separator, Between::Warpgroups);
    conflicts.begin(kernel_);
    Run run(table_, conflicts, false);
    run.run(parts_);
    if (!run.found().empty()) return {};  // more than a barrier orders them
    drop_superfluous(parts_, table_, conflicts, tried);
    std::set<const Part*> out;
    for_each_barrier(parts_, [&](Part& barrier, bool) {
      if (barrier.is_dropped && tried(barrier)) out.insert(&barrier);
    });
    return out;
  }

 private:
  const FunctionRef& function_;
  const Kernel& kernel_;
  AccessTable& table_;
  Part& parts_;
};

}  // namespace

Ref<const Kernel> with_warpgroup_barriers(const FunctionRef& f, const Ref<const Kernel>& kernel) {
  AccessTable table(*f);
  const PartRef parts = parts_of(*f, *kernel, table);
  Narrowing narrowing(f, *kernel, table, *parts);
  const std::set<const Part*> apart = narrowing.of(Separator::Barrier, is_sync_threads);
  std::set<const Part*> fenced;
  for_each_barrier(*parts, [&](Part& barrier, bool has_fence) {
    barrier.is_dropped = !has_fence;
    if (has_fence) fenced.insert(&barrier);
  });
  const std::set<const Part*> unfenced =
      narrowing.of(Separator::Fence, [&](const Part& each) { return apart.contains(&each) && fenced.contains(&each); });
  for_each_barrier(*parts, [&](Part& barrier, bool has_fence) {
    barrier.is_dropped = false;
    if (has_fence ? !unfenced.contains(&barrier) : !apart.contains(&barrier)) return;
    barrier.stmt = tile_op(TileOpcode::SyncWarpgroups, {}, barrier.stmt->span);
  });
  const Stmt body = statement_of(*parts, kernel->body);
  if (body == kernel->body) return kernel;
  return copy_with(*kernel, [&](Kernel& out) { out.body = body; });
}

}  // namespace helve
