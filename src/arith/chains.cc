// Conjunctions and disjunctions of any number of conditions.
// Each condition is simplified where the earlier ones hold (in `or`: where they do not). The facts are carried along
// the chain, so that a guard of many conditions costs about as much as its conditions one by one.
#include "helve/ir/expr/chain.h"
#include "simplifier.h"

namespace helve {

Expr negated_chain(const Expr& e, const Apply& chain) {
  std::vector<Expr> operands = operands_of_chain(as<Apply>(e)->args[0], chain.op);
  for (Expr& operand : operands) operand = apply(Op::Not, {operand}, e->span);
  return helve::chain(chain.op == Op::And ? Op::Or : Op::And, operands, e->span, e);
}

Expr Simplifier::simplify_chain(const Expr& e) {
  const Op op = as<Apply>(e)->op;
  const bool all = op == Op::And;
  Simplifier inner{Facts(facts_)};
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
  return kept.empty() ? bool_imm(all, e->span) : chain(op, kept, e->span, e);
}

}  // namespace helve
