// Questions about paths.
// Extents are existential, scalar parameters are not: the caller knows what they mean.
#include "query.h"

#include <fmt/format.h>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/visit.h"

namespace helve::proofs {

Query::Query(const Program& program) : program_(program) {
  for (const VarRef& dim : program.function->dims) {
    vars_.push_back(dim);
    require(apply(Op::Le, {int_imm(0), Expr(dim)}));
    facts_.bind(dim, {0, std::nullopt});
  }
  for (const Param& param : program.function->params) {
    const VarRef* var = std::get_if<VarRef>(&param);
    if (!var || !(*var)->dtype.is_integer()) continue;
    vars_.push_back(*var);
    scalars_.push_back(*var);
  }
}

void Query::doubt(const std::string& reason) {
  if (doubt_.empty()) doubt_ = reason;
}

void Query::add(const Step& step, const Substitution& renamed) {
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
  if (step.condition) {
    own.condition = now(step.condition);
    require(own.condition);
  } else if (step.begins.empty()) {
    doubt(step.vars.empty() ? "how often a while loop runs is not known"
                            : fmt::format("the value of '{}' is not known", step.vars[0]->name));
  }
  learn(facts_, own, program_.constant);
}

Expr Query::conjunction(const Expr& last) const {
  Expr all = last;
  for (size_t i = conditions_.size(); i-- > 0;) all = all ? logical_and(conditions_[i], all) : conditions_[i];
  return all ? all : bool_imm(true);
}

Answer Query::excludes(const Expr& violation, Budget& budget) const {
  if (--budget.questions < 0) return {Verdict::Unknown, {}, {}, "over the budget of questions"};
  const Translation translation{&facts_, &program_.constant};
  const Expr condition = conjunction(violation);
  const IntegerSet broken(budget.engine, vars_, condition, {}, translation);
  Answer answer = broken.is_empty();
  if (answer.verdict != Verdict::Refuted) {
    if (answer.verdict == Verdict::Unknown && !doubt_.empty()) answer.reason = doubt_;
    return answer;
  }
  if (!doubt_.empty()) return {Verdict::Unknown, {}, {}, doubt_};
  std::vector<VarRef> used;
  for (const VarRef& scalar : scalars_) {
    if (mentions(condition, scalar.get())) used.push_back(scalar);
  }
  if (used.empty()) return answer;
  const IntegerSet runs(budget.engine, vars_, conjunction({}), {}, translation);
  const Answer always = runs.projected(used).is_subset_of(broken.projected(used));
  if (always.verdict == Verdict::Proved) return answer;
  return {Verdict::Unknown, {}, {}, fmt::format("it depends on the argument '{}'", used[0]->name)};
}

std::optional<int64_t> evaluate(const Expr& e, const Witness& witness) {
  Substitution values;
  for (const auto& [var, value] : witness) values[var.get()] = int_imm(value, var->dtype);
  const Expr result = simplify(substitute(e, values));
  const int64_t* value = int_value(result);
  return value ? std::optional(*value) : std::nullopt;
}

std::string mentioned_text(const Witness& witness, const std::vector<Expr>& exprs) {
  std::string out;
  for (const auto& [var, value] : witness) {
    bool used = false;
    for (const Expr& e : exprs) used |= mentions(e, var.get());
    if (used) out += fmt::format("{}{}={}", out.empty() ? "" : ", ", var->name, value);
  }
  return out;
}

}  // namespace helve::proofs
