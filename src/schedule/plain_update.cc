// Plain stores that are updates but for the order of their values.
// The old value is one operand of the operator, as it stands in memory; the others do not read it.
#include "plain_update.h"

#include "helve/ir/tensor/update.h"

namespace helve {

Stmt plain_update(const Stmt& s) {
  const Store* store = as<Store>(s);
  if (!store || store->mode != StoreMode::Write) return s;
  const std::optional<Reduction> found = reduction_in_some_order(*store);
  return found ? update(store->buffer, store->indices, found->operand, found->mode, s->span) : s;
}

}  // namespace helve
