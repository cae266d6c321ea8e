// Cases of program order.
// The loop that decides is the outermost one in whose iterations two instances differ, so that no time is compared.
#include "helve/analysis/region_order.h"

#include <algorithm>

#include "helve/ir/expr/chain.h"
#include "helve/ir/tensor/call_facts.h"

namespace helve {

OrderCases order_cases(const RegionStatement& first, const RegionStatement& second,
                       const std::function<Expr(const VarRef&)>& agree,
                       const std::function<Expr(size_t, const VarRef&)>& apart, bool together) {
  OrderCases cases;
  std::vector<Expr> equal;
  for (size_t l = 0; l < common_loops(first, second); ++l) {
    for (const VarRef& var : first.loops[l]->vars) {
      if (const Expr differs = apart(l, var)) {
        cases.push_back(equal);
        cases.back().push_back(differs);
      }
      equal.push_back(agree(var));
    }
  }
  if (together) cases.push_back(equal);
  return cases;
}

Expr any_of(const OrderCases& cases) {
  std::vector<Expr> out;
  for (const std::vector<Expr>& each : cases) out.push_back(each.empty() ? bool_imm(true) : conjunction(each));
  return chain(Op::Or, out);
}

size_t loops_around(const AccessModel& model, const Buffer& buffer) {
  const auto home = model.home.find(&buffer);
  if (home == model.home.end()) return 0;
  size_t count = 0;
  for (size_t i = model.around.size(); i < home->second.size(); ++i) count += !home->second[i]->begins.empty();
  return count;
}

PathConditions conditions_around(const AccessModel& model) {
  PathConditions query(model);
  for (const Expr& condition : conditions_of_calls(*model.function)) query.require(condition);
  for (const StepRef& step : model.around) {
    if (says_something(*step)) query.add(*step);
  }
  return query;
}

}  // namespace helve
