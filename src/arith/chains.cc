// Conjunctions and disjunctions of any number of conditions.
// Each condition is simplified where the earlier ones hold (in `or`: where they do not). The facts are carried along
// the chain, so that a guard of many conditions costs about as much as its conditions one by one.
#include "helve/ir/expr/build.h"
#include "simplifier.h"

namespace helve {

namespace {

/// The chain of the operands to the left, of nodes of `e` where it has them.
Expr chain_of(const std::vector<Expr>& operands, Op op, const Expr& e) {
  std::vector<Expr> spine;  // the longest part of `e` first
  for (Expr at = e; as_op(at, op); at = as<Apply>(at)->args[0]) spine.push_back(at);
  Expr out = operands[0];
  for (size_t i = 1; i < operands.size(); ++i) {
    if (i <= spine.size()) {
      const Expr& given = spine[spine.size() - i];
      const Apply& node = *as<Apply>(given);
      if (node.args[0] == out && node.args[1] == operands[i]) {
        out = given;
        continue;
      }
    }
    Ref<Apply> node = make_ref<Apply>(kBool, op, std::vector<Expr>{out, operands[i]});
    node->span = e->span;
    out = Expr(node);
  }
  return out;
}

}  // namespace

Expr negated_chain(const Expr& e, const Apply& chain) {
  std::vector<Expr> operands = operands_of_chain(as<Apply>(e)->args[0], chain.op);
  for (Expr& operand : operands) operand = apply(Op::Not, {operand}, e->span);
  return chain_of(operands, chain.op == Op::And ? Op::Or : Op::And, e);
}

Expr Simplifier::simplify_chain(const Expr& e) {
  const Op op = as<Apply>(e)->op;
  const bool all = op == Op::And;
  Simplifier inner(facts_);
  std::vector<Expr> kept;
  for (const Expr& given : operands_of_chain(e, op)) {
    for (const Expr& part : operands_of_chain(inner.simplify(given), op)) {
      if (const int64_t* truth = int_value(part)) {
        if ((*truth != 0) == all) continue;
        return bool_imm(!all, e->span);
      }
      kept.push_back(part);
      inner.learn(part, all);
      if (inner.facts_.contradictory()) return bool_imm(!all, e->span);
    }
  }
  return kept.empty() ? bool_imm(all, e->span) : chain_of(kept, op, e);
}

}  // namespace helve
