// The old value in the value that is stored: a load of the same element, by the same subscripts.
// It takes part once; more often, and only the order of the iterations defines the result.
#include "helve/ir/tensor/update.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/arith/sum.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/expr/visit.h"
#include "helve/support/text.h"

namespace helve {

namespace {

bool is_old(const Expr& e, const Update& update) {
  const Load* load = as<Load>(e);
  return load && &buffer_of(load->buffer) == update.buffer &&
         std::equal(load->indices.begin(), load->indices.end(), update.element.begin(), update.element.end(),
                    same_expr);
}

int64_t loads_of(const Buffer* buffer, const Expr& e) {
  int64_t count = 0;
  walk(e, [&](const Expr& node) {
    const Load* load = as<Load>(node);
    count += load && &buffer_of(load->buffer) == buffer;
  });
  return count;
}

/// Does `op`, or a difference for sums, combine the old value with others?
bool combines_old(const Expr& value, Op op, const Update& update) {
  if (is_old(value, update)) return true;
  const Apply* apply = as<Apply>(value);
  if (!apply) return false;
  if (apply->op == Op::Sub && op == Op::Add) return combines_old(apply->args[0], op, update);
  return apply->op == op && (combines_old(apply->args[0], op, update) || combines_old(apply->args[1], op, update));
}

/// Of a value that is taken if a comparison with the old value holds: which one remains.
std::optional<Op> chosen(const Expr& condition, const Expr& value, const Update& update) {
  const Apply* test = as<Apply>(condition);
  if (!test || test->args.size() != 2) return std::nullopt;
  const bool greater = test->op == Op::Gt || test->op == Op::Ge, less = test->op == Op::Lt || test->op == Op::Le;
  const Expr &a = test->args[0], &b = test->args[1];
  const bool first = same_expr(a, value) && is_old(b, update), second = same_expr(b, value) && is_old(a, update);
  if ((!greater && !less) || (!first && !second)) return std::nullopt;
  return greater == first ? Op::Max : Op::Min;
}

}  // namespace

Update update_of(const Store& store) {
  return {store.buffer.get(), store.indices, store.is_atomic() ? store.value : stored_value(store)};
}

Expr stored_value(const Store& store) {
  if (store.mode == StoreMode::Write) return store.value;
  const Expr old = load(store.buffer, store.indices, store.span);
  return convert_for_store(apply(combining_operator(store.mode), {old, store.value}, store.span), store.buffer->dtype);
}

Expr as_stored(const Expr& value) {
  const bool is_rounded =
      value->kind == ExprKind::Load || value->kind == ExprKind::FloatImm || value->kind == ExprKind::Cast;
  return is_rounded || !value->dtype.is_small_float() ? value : cast(cast(value, kFloat32), value->dtype);
}

bool reads_old(const Update& update) {
  const auto reads = [&](const Expr& e) {
    bool found = false;
    walk(e, [&](const Expr& node) { found |= is_old(node, update); });
    return found;
  };
  return reads(update.value) || std::any_of(update.conditions.begin(), update.conditions.end(), reads);
}

std::optional<Op> combination(const Update& update) {
  const int64_t loads = loads_of(update.buffer, update.value);
  if (loads == 0) {
    for (const Expr& condition : update.conditions) {
      for (const Expr& operand : operands_of_chain(condition, Op::And)) {
        if (const std::optional<Op> op = chosen(operand, update.value, update)) return op;
      }
    }
    return std::nullopt;
  }
  if (const Apply* selected = as_op(update.value, Op::Select); selected && is_old(selected->args[2], update)) {
    return chosen(selected->args[0], selected->args[1], update);
  }
  if (loads != 1) return std::nullopt;
  for (const Op op : {Op::Add, Op::Mul, Op::Max, Op::Min, Op::And, Op::Or}) {
    if (!is_old(update.value, update) && combines_old(update.value, op, update)) return op;
  }
  return std::nullopt;
}

std::optional<Reduction> reduction_of(const Store& store) {
  return store.is_update() || store.buffer->dtype.is_integer() ? reduction_in_some_order(store) : std::nullopt;
}

std::optional<Reduction> reduction_in_some_order(const Store& store) {
  if (store.is_update()) return Reduction{store.mode, store.value};
  if (store.is_atomic() || loads_of(store.buffer.get(), store.value) != 1) return std::nullopt;
  const Update update = update_of(store);
  for (const StoreMode mode : {StoreMode::Add, StoreMode::Mul, StoreMode::Max, StoreMode::Min}) {
    const Op op = combining_operator(mode);
    std::vector<Expr> operands = operands_of_chain(store.value, op);
    const auto old = std::find_if(operands.begin(), operands.end(), [&](const Expr& e) { return is_old(e, update); });
    if (old == operands.end() || operands.size() < 2) continue;
    const ExprNode* load = old->get();
    operands.erase(old);
    Expr rest = operands[0];
    for (size_t i = 1; i < operands.size(); ++i) rest = apply(op, {rest, operands[i]}, store.span);
    return Reduction{mode, rest, load};
  }
  return std::nullopt;
}

std::string reduction_text(Op combination) {
  switch (combination) {
    case Op::Add: return "T.reduce_sum";
    case Op::Mul: return "T.reduce_prod";
    case Op::Max: return "T.reduce_max";
    case Op::Min: return "T.reduce_min";
    case Op::And: return "T.reduce_all";
    case Op::Or: return "T.reduce_any";
    default: return {};
  }
}

namespace {

/// "T.atomic_max"; empty for what has no atomic operation.
std::string atomic_name(Op combination) {
  for (const StoreMode mode : {StoreMode::AtomicAdd, StoreMode::AtomicMax, StoreMode::AtomicMin}) {
    if (combining_operator(mode) == combination) return fmt::format("T.{}", to_string(mode));
  }
  return {};
}

}  // namespace

std::string atomic_text(const Update& update) {
  const std::optional<Op> op = combination(update);
  const std::string name = op ? atomic_name(*op) : "";
  if (name.empty() || !admits_atomics(*update.buffer)) return {};
  return fmt::format("{}({}[{}], ...)", name, update.buffer->name, join(update.element, ", ", brief_text));
}

std::string private_remedy(const Update& update) {
  const std::optional<Op> op = combination(update);
  if (!op) return "use a T.serial loop";
  const std::string atomic = atomic_name(*op);
  return fmt::format("use {}{} of a buffer with the terms{} a T.serial loop",
                     atomic.empty() ? "" : atomic + " to shared memory, ", reduction_text(*op),
                     atomic.empty() ? " or" : ", or");
}

}  // namespace helve
