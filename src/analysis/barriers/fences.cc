// Fences before barriers.
// A barrier with a fence orders what threads write with what TMA accesses later, as a barrier orders threads. So the
// superfluous fences of a kernel that has one before each barrier are found like superfluous barriers.
#include "drop.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "run.h"

namespace helve {

using namespace barriers;

namespace {

/// May cores write global memory that TMA of other cores accesses? The analysis is of one block; between cores only
/// collectives are barriers, and all of them have fences then.
bool cores_may_meet(const Part& kernel, const AccessTable& table) {
  for (const AccessId a : kernel.all) {
    const BlockAccess& written = table.access(a);
    if (!written.write || written.in_async_proxy || !is_global(*written.buffer)) continue;
    for (const AccessId b : kernel.all) {
      if (table.access(b).in_async_proxy && table.memory(a) == table.memory(b)) return true;
    }
  }
  return false;
}

/// A fence before each barrier that is not dropped.
void place_fences(Part& part) {
  std::vector<PartRef> out;
  for (PartRef& each : part.parts) {
    if (each->kind == Part::Kind::Barrier && !each->is_dropped) {
      out.push_back(std::make_unique<Part>());
      out.back()->kind = Part::Kind::Accesses;
      out.back()->stmt = tile_op(TileOpcode::FenceAsync, {}, each->stmt->span);
    }
    each->is_dropped = false;
    place_fences(*each);
    out.push_back(std::move(each));
  }
  part.parts = std::move(out);
}

}  // namespace

Ref<const Kernel> with_fences(const FunctionRef& f, const Ref<const Kernel>& kernel) {
  AccessTable table(*f);
  ConflictQueries conflicts(f, table, Separator::Fence);
  conflicts.begin(*kernel);
  const PartRef parts = parts_of(*f, *kernel, table);
  const auto suffice = [&] {
    Run run(table, conflicts, false);
    run.run(*parts);
    return run.found().empty();
  };
  HELVE_CHECK(suffice(), "TMA accesses what a thread has written without a barrier in between");
  const bool of_cores = has_collective(kernel->body) && cores_may_meet(*parts, table);
  drop_superfluous(*parts, table, conflicts,
                   [&](const Part& barrier) { return is_sync_threads(barrier) || !of_cores; });
  HELVE_CHECK(suffice(), "inserted fences do not suffice");
  place_fences(*parts);
  const Stmt body = statement_of(*parts, kernel->body);
  if (body == kernel->body) return kernel;
  return copy_with(*kernel, [&](Kernel& out) { out.body = body; });
}

}  // namespace helve
