// Accesses of what TMA has written to global memory.
// Whatever comes between the two, their order needs a wait until the data have arrived: no barrier or wait counts here.
#include "helve/analysis/stored_results.h"
#include "helve/ir/tensor/visit.h"
#include "run.h"

namespace helve {

using namespace barriers;

namespace {

void ignore_barriers(Part& part) {
  part.is_dropped = part.kind == Part::Kind::Barrier;
  for (const PartRef& each : part.parts) ignore_barriers(*each);
}

}  // namespace

bool accesses_stored_results(const FunctionRef& f, const Kernel& kernel) {
  if (has_collective(kernel.body)) return true;
  AccessTable table(*f);
  ConflictQueries conflicts(f, table, Separator::Arrival);
  conflicts.begin(kernel);
  const PartRef parts = parts_of(*f, kernel, table);
  ignore_barriers(*parts);
  return Run(table, conflicts, false).finds_any(*parts);
}

}  // namespace helve
