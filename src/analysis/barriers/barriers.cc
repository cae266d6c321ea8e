// Checking and inserting barriers: a table of accesses, their conflicts, and runs over a kernel's parts.
// Both use the same table, so that a check after the insertion costs no further query.
#include "helve/analysis/barriers.h"

#include "conflicts.h"
#include "drop.h"
#include "part.h"
#include "run.h"

namespace helve {

using namespace barriers;

class BarrierAnalysis::Impl {
 public:
  explicit Impl(const FunctionRef& f) : function_(f), table_(*f), conflicts_(f, table_) {}

  std::vector<UnorderedAccesses> unordered(const Kernel& kernel) {
    conflicts_.begin(kernel);
    const PartRef parts = parts_of(*function_, kernel, table_);
    Run run(table_, conflicts_, false);
    run.run(*parts);
    return accesses_of(run.found(), *parts);
  }

  Ref<const Kernel> with_barriers(const Ref<const Kernel>& kernel, std::vector<UnorderedAccesses>* undecided) {
    conflicts_.begin(*kernel);
    const PartRef parts = parts_of(*function_, *kernel, table_);
    Run(table_, conflicts_, true).run(*parts);
    const std::vector<Found> kept = drop_superfluous(*parts, table_, conflicts_, is_sync_threads);
    if (undecided) *undecided = accesses_of(kept, *parts);
    const Stmt body = statement_of(*parts, kernel->body);
    if (body == kernel->body) return kernel;
    return copy_with(*kernel, [&](Kernel& out) { out.body = body; });
  }

  const BarrierWork& work() const { return conflicts_.work(); }

 private:
  std::vector<UnorderedAccesses> accesses_of(const std::vector<Found>& found, const Part& kernel) {
    std::vector<UnorderedAccesses> out;
    for (const Found& each : found) {
      const BlockAccess& later = table_.access(each.later);
      const Part* earlier = part_with(kernel, each.earlier, table_);
      out.push_back({later.buffer, earlier->stmt, each.place->stmt, each.conflict == Conflict::Certain});
    }
    return out;
  }

  FunctionRef function_;
  AccessTable table_;
  ConflictQueries conflicts_;
};

BarrierAnalysis::BarrierAnalysis(const FunctionRef& f) : impl_(std::make_unique<Impl>(f)) {}
BarrierAnalysis::~BarrierAnalysis() = default;

std::vector<UnorderedAccesses> BarrierAnalysis::unordered(const Kernel& kernel) { return impl_->unordered(kernel); }

Ref<const Kernel> BarrierAnalysis::with_barriers(const Ref<const Kernel>& kernel,
                                                 std::vector<UnorderedAccesses>* undecided) {
  return impl_->with_barriers(kernel, undecided);
}

const BarrierWork& BarrierAnalysis::work() const { return impl_->work(); }

}  // namespace helve
