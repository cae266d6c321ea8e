// Steps of a path as conditions on its variables.
// What a step does not say is a doubt, so that what follows from the conditions holds all the same.
#include "helve/analysis/path_conditions.h"

#include <fmt/format.h>

namespace helve {

void PathConditions::doubt(const std::string& reason) {
  if (doubt_.empty()) doubt_ = reason;
}

void PathConditions::add(const Step& step, const Substitution& renamed) {
  auto now = [&](const Expr& e) { return renamed.empty() ? e : substitute(e, renamed); };
  Step own;
  for (const VarRef& var : step.vars) {
    auto it = renamed.find(var.get());
    own.vars.push_back(it == renamed.end() ? var : VarRef(as<Var>(it->second)));
    if (own.vars.back()->dtype.is_integer()) vars_.push_back(own.vars.back());
  }
  for (size_t d = 0; d < step.begins.size(); ++d) {
    own.begins.push_back(now(step.begins[d]));
    own.extents.push_back(now(step.extents[d]));
    const Expr var = Expr(own.vars[d]);
    require(apply(Op::Le, {own.begins[d], var}));
    require(less(var, own.begins[d] + own.extents[d]));
  }
  if (step.value) {
    own.value = now(step.value);
    require(apply(Op::Eq, {Expr(own.vars[0]), own.value}));
  } else if (step.condition) {
    own.condition = now(step.condition);
    require(own.condition);
  } else if (step.begins.empty()) {
    doubt(step.vars.empty() ? "how often a while loop runs is not known"
                            : fmt::format("the value of '{}' is not known", step.vars[0]->name));
  }
  later_.push_back(std::move(own));
}

const Facts& PathConditions::facts() const {
  for (const Step& step : later_) learn(facts_, step, constant_);
  later_.clear();
  return facts_;
}

}  // namespace helve
