// The shape of conditions joined by one operator.
// Short chains are spines, as Python groups them; long ones are halved until they are short.
#include "helve/ir/expr/chain.h"

#include <span>

namespace helve {

namespace {

using Conditions = std::span<const Expr>;

Expr join_two(Op op, const Expr& left, const Expr& right, const Span& span, const Expr& like) {
  const Apply* given = like ? as_op(like, op) : nullptr;
  return given && given->args[0] == left && given->args[1] == right ? like : apply(op, {left, right}, span);
}

Expr spine(Op op, Conditions conditions, const Span& span, const Expr& like) {
  std::vector<Expr> given;  // the longest part of `like` first
  for (Expr at = like; at && as_op(at, op); at = as<Apply>(at)->args[0]) given.push_back(at);
  Expr out = conditions[0];
  for (size_t i = 1; i < conditions.size(); ++i)
    out = join_two(op, out, conditions[i], span, i <= given.size() ? given[given.size() - i] : Expr());
  return out;
}

Expr halves(Op op, Conditions conditions, const Span& span, const Expr& like) {
  if (conditions.size() <= kChainSpine) return spine(op, conditions, span, like);
  const Apply* given = like ? as_op(like, op) : nullptr;
  const size_t left = (conditions.size() + 1) / 2;
  const Expr first = halves(op, conditions.first(left), span, given ? given->args[0] : Expr());
  const Expr second = halves(op, conditions.subspan(left), span, given ? given->args[1] : Expr());
  return join_two(op, first, second, span, like);
}

}  // namespace

Expr chain(Op op, const std::vector<Expr>& conditions, Span span, const Expr& like) {
  return halves(op, conditions, span, like);
}

Expr chain_operands(Op op, const std::vector<Operand>& conditions, Span span) {
  std::vector<Expr> exprs;
  for (const Operand& each : conditions) {
    const Expr* e = std::get_if<Expr>(&each);
    exprs.push_back(e ? *e : constant_of(each, kBool, span));
  }
  return chain(op, exprs, span);
}

Expr conjunction(const std::vector<Expr>& conditions) {
  return conditions.empty() ? bool_imm(true) : chain(Op::And, conditions);
}

}  // namespace helve
