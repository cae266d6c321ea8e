// Atomic operations on a GPU as one loop over all elements.
// If threads hold copies of an element, the division among threads makes the first of them update it.
#include "atomic.h"

#include "over_elements.h"
#include "schedules.h"

namespace helve::cuda {

Stmt lower_atomic(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const std::optional<AtomicUpdate> update = atomic_update(op, declined);
  if (!update) return {};
  return over_elements(update->dst.shape(), *context.facts,
                       [&](const std::vector<Expr>& at, const Facts&) { return update->element(at); });
}

}  // namespace helve::cuda
