// The walk of simplify(): operands first, then the rules, then the normal form of the operator.
// Termination: a node is normalised again only when it got smaller in the order stated in rules.cc, in which a quotient
// by a smaller divisor or of smaller coefficients is also smaller.
#include "helve/arith/simplify.h"

#include "fold.h"
#include "helve/arith/rules.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/visit.h"
#include "helve/support/diagnostic.h"
#include "simplifier.h"

namespace helve {

namespace {

/// Occurrences of the largest selection whose operands are simplified under its condition.
constexpr uint32_t kMaxInContext = 4096;

}  // namespace

Expr Simplifier::with_operands(const Expr& e, Op op, DType dtype, std::vector<Expr> args) {
  Ref<Apply> node = make_ref<Apply>(dtype, op, std::move(args));
  node->span = e->span;
  const Expr made(node);
  return same_expr(made, e) ? e : made;
}

Expr Simplifier::under(const Expr& condition, bool value, const Expr& e) {
  if (condition->kind == ExprKind::IntImm) return simplify(e);
  Simplifier inner{Facts(facts_)};
  inner.learn(condition, value);
  return inner.facts_.contradictory() ? Expr() : inner.simplify(e);
}

Expr Simplifier::simplify_operands(const Expr& e) {
  const Apply* node = as<Apply>(e);
  if (node && (node->op == Op::And || node->op == Op::Or)) return simplify_chain(e);
  if (node && node->op == Op::Not) {
    const Apply* inner = as<Apply>(node->args[0]);
    if (inner && (inner->op == Op::And || inner->op == Op::Or)) return simplify(negated_chain(e, *inner));
  }
  // Under what a condition says every part is another question, so the time would double with each selection.
  if (node && node->op == Op::Select && e->occurrences() <= kMaxInContext) return simplify_selection(e, *node);
  return map_children(e, [&](const Expr& child) { return simplify(child); });
}

Expr Simplifier::simplify_selection(const Expr& e, const Apply& node) {
  Expr condition = simplify(node.args[0]);
  Expr first = under(condition, true, node.args[1]);
  Expr second = under(condition, false, node.args[2]);
  if (!first || !second) {  // one side of the condition is nowhere
    condition = bool_imm(first != nullptr, condition->span);
    if (!first) first = simplify(node.args[1]);
    if (!second) second = simplify(node.args[2]);
  }
  if (condition == node.args[0] && first == node.args[1] && second == node.args[2]) return e;
  return with_operands(e, Op::Select, e->dtype, {condition, first, second});
}

Expr Simplifier::simplify(const Expr& e) {
  return known_.of(e, [&] { return simplify_new(e); });
}

Expr Simplifier::simplify_new(const Expr& e) {
  const Expr out = normalise(simplify_operands(e));
  return out != e && same_expr(out, e) ? e : out;
}

void Simplifier::learn(const Expr& condition, bool value) {
  own_->assume_normal(condition, value);
  known_ = {};
}

Expr Simplifier::normalise(const Expr& e) {
  if (e->kind == ExprKind::IntImm || e->kind == ExprKind::FloatImm) return e;
  if (Expr folded = fold_constants(e)) return folded;
  if (e->dtype.is_integer()) {
    if (auto value = interval_of(e, facts_).single()) return int_imm(*value, e->dtype, e->span);
  }
  if (Expr rewritten = apply_rules(e)) return simplify(rewritten);
  Expr out = e;
  const Apply* node = as<Apply>(e);
  if (node && node->args[0]->dtype.is_index()) out = normalise_index(e, *node);
  if (out->dtype.is_bool() && out->kind != ExprKind::IntImm) {
    const Apply* negation = as_op(out, Op::Not);
    if (auto truth = facts_.known(negation ? negation->args[0] : out))
      return bool_imm(*truth != (negation != nullptr), e->span);
  }
  return out;
}

Expr Simplifier::normalise_index(const Expr& e, const Apply& node) {
  switch (node.op) {
    case Op::Add:
    case Op::Sub:
    case Op::Neg:
    case Op::Mul: return written(sum_of(e), e->span);
    case Op::FloorDiv:
    case Op::FloorMod: return normalise_division(e, node);
    case Op::Min:
    case Op::Max: return normalise_extreme(e, node);
    case Op::Lt:
    case Op::Le:
    case Op::Gt:
    case Op::Ge:
    case Op::Eq:
    case Op::Ne: return normalise_comparison(e, node);
    case Op::Abs: {
      const Interval range = interval_of(node.args[0], facts_);
      if (range.at_least(0)) return node.args[0];
      if (!range.at_most(0)) return e;
      std::optional<Sum> negated = scale(sum_of(node.args[0]), -1);
      return negated ? written(*negated, e->span) : e;
    }
    default: return e;
  }
}

Expr simplify(const Expr& e, const Facts& facts) { return Simplifier(facts).simplify(e); }

bool can_prove(const Expr& condition, const Facts& facts) {
  HELVE_CHECK(condition->dtype.is_bool(), "only a condition can be proved");
  const Expr normal = simplify(condition, facts);
  const int64_t* value = int_value(normal);
  return value && *value != 0;
}

std::optional<int64_t> constant_value(const Expr& e) {
  const Expr normal = simplify(e);
  const int64_t* value = int_value(normal);
  if (!value || (e->dtype == DType{TypeCode::UInt, 64} && *value < 0)) return std::nullopt;
  return *value;
}

}  // namespace helve
