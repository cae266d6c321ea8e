// Plain stores that are updates but for the order of their values.
// The old value is one operand of the operator, as it stands in memory; the other one does not read it.
#include "plain_update.h"

#include "helve/arith/sum.h"
#include "helve/ir/tensor/update.h"

namespace helve {

Stmt plain_update(const Stmt& s) {
  const Store* store = as<Store>(s);
  const Apply* value = store && store->mode == StoreMode::Write ? as<Apply>(store->value) : nullptr;
  if (!value || value->args.size() != 2) return s;
  const Expr old = load(store->buffer, store->indices);
  for (const StoreMode mode : {StoreMode::Add, StoreMode::Mul, StoreMode::Max, StoreMode::Min}) {
    if (value->op != combining_operator(mode) || combination(update_of(*store)) != value->op) continue;
    for (const size_t n : {0, 1}) {
      if (same_expr(value->args[n], old)) {
        return update(store->buffer, store->indices, value->args[1 - n], mode, s->span);
      }
    }
  }
  return s;
}

}  // namespace helve
