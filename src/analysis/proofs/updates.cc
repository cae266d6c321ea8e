// The old value in the value that is stored: a load of the same element, by the same subscripts.
// An atomic operation does the same if that value takes part once, in sums, maxima or minima alone.
#include "updates.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/ir/expr/text.h"
#include "helve/ir/expr/visit.h"
#include "helve/support/text.h"

namespace helve::proofs {

namespace {

bool loads_element_of(const Expr& e, const Store& store) {
  const Load* load = as<Load>(e);
  return load && &buffer_of(load->buffer) == store.buffer.get() &&
         std::equal(load->indices.begin(), load->indices.end(), store.indices.begin(), store.indices.end(),
                    [](const Expr& x, const Expr& y) { return same_expr(x, y); });
}

/// Does `op`, or a difference for sums, combine the old value with others?
bool combines_old(const Expr& value, Op op, const Store& update) {
  if (loads_element_of(value, update)) return true;
  const Apply* apply = as<Apply>(value);
  if (!apply) return false;
  if (apply->op == Op::Sub && op == Op::Add) return combines_old(apply->args[0], op, update);
  return apply->op == op && (combines_old(apply->args[0], op, update) || combines_old(apply->args[1], op, update));
}

}  // namespace

const Store* updated_by(const Access& access) {
  if (!access.write || access.stmt->kind != StmtKind::Store) return nullptr;
  const auto& store = static_cast<const Store&>(*access.stmt);
  bool found = false;
  walk(store.value, [&](const Expr& e) { found |= loads_element_of(e, store); });
  return found && !store.is_atomic() ? &store : nullptr;
}

std::string atomic_text(const Store& update) {
  int64_t loads = 0;
  walk(update.value, [&](const Expr& e) {
    const Load* load = as<Load>(e);
    loads += load && &buffer_of(load->buffer) == update.buffer.get();
  });
  if (loads != 1 || !admits_atomics(*update.buffer)) return {};
  for (const StoreMode mode : {StoreMode::AtomicAdd, StoreMode::AtomicMax, StoreMode::AtomicMin}) {
    if (!combines_old(update.value, combining_operator(mode), update)) continue;
    return fmt::format("T.{}({}[{}], ...)", to_string(mode), update.buffer->name,
                       join(update.indices, ", ", [](const Expr& e) { return to_text(e); }));
  }
  return {};
}

}  // namespace helve::proofs
