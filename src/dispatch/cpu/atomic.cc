// Atomic operations on the CPU.
// One element at a time: CPUs have no vector atomics.
#include "atomic.h"

#include "element_nest.h"
#include "schedules.h"

namespace helve::cpu {

Stmt lower_atomic(const TileOp& op, const LoweringContext&, std::string* declined) {
  const std::optional<AtomicUpdate> update = atomic_update(op, declined);
  if (!update) return {};
  return element_nest(nest_dims(update->tiles, update->tiles.shape()), update->element);
}

}  // namespace helve::cpu
