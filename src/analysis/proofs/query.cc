// Exact queries about paths.
// If extents and integer parameters decide, the result is the exact condition on them, which a call can check.
#include "query.h"

#include <fmt/format.h>

#include <algorithm>

#include "coarse.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/expr/visit.h"
#include "helve/support/text.h"
#include "order.h"

namespace helve::proofs {

Query::Query(const AccessModel& model) : PathConditions(model), model_(model) {
  for (const VarRef& dim : model.function->dims) {
    add_variable(dim);
    given_.push_back(dim);
    require(apply(Op::Le, {int_imm(0), Expr(dim)}));
    facts_.bind(dim, {0, std::nullopt});
  }
  for (const Param& param : model.function->params) {
    const VarRef* var = std::get_if<VarRef>(&param);
    if (!var || !(*var)->dtype.is_integer()) continue;
    add_variable(*var);
    given_.push_back(*var);
    require_range(*var);
  }
  for (const Assumption& each : model.function->assumptions) require(each.condition);
  ranges_ = conditions().size();
}

/// The range of a parameter's type; 64 bits are no restriction.
void Query::require_range(const VarRef& var) {
  if (!var->dtype.is_data_int()) return;
  const Interval range = interval_of(Expr(var), facts_);
  const Expr value = cast(Expr(var), kIndex);
  const bool wide = var->dtype.bits == 64;
  if (range.low && !(wide && *range.low < 0)) require(apply(Op::Le, {int_imm(*range.low), value}));
  if (range.high && !wide) require(apply(Op::Le, {value, int_imm(*range.high)}));
}

std::vector<Expr> Query::all_conditions(const Expr& last) const {
  std::vector<Expr> out = conditions();
  if (last) out.push_back(last);
  return out;
}

bool Query::add_order(std::vector<Expr>& conditions) const {
  if (!relies_on_order_) return false;
  const std::vector<Expr> order = order_among(conditions, constant());
  conditions.insert(conditions.end(), order.begin(), order.end());
  return !order.empty();
}

bool Query::is_empty_coarsely(const Expr& violation, Budget& budget) const {
  std::vector<Expr> all = all_conditions(violation);
  std::vector<VarRef> vars = this->vars();
  std::optional<CoarseQuestion> coarse = coarsen(all, given_, facts());
  if (coarse) {
    all = std::move(coarse->conditions);
    vars.insert(vars.end(), coarse->vars.begin(), coarse->vars.end());
  }
  if (add_order(all)) {
    for (const VarRef& var : loosen_limits(all)) vars.push_back(var);
  } else if (!coarse) {
    return false;
  }
  const IntegerSet set(budget.engine, std::move(vars), conjunction(std::move(all)), {}, translation());
  return set.emptiness().verdict == Verdict::Proved;
}

Finding Query::excludes(const Expr& violation, Budget& budget) const {
  if (--budget.queries < 0) return {ProofVerdict::Unknown, {}, std::string(kOverBudget), {}};
  if (is_empty_coarsely(violation, budget)) return {ProofVerdict::Proved, {}, {}, {}};
  std::vector<Expr> all = all_conditions(violation);
  add_order(all);
  const IntegerSet broken(budget.engine, vars(), conjunction(std::move(all)), {}, translation());
  const Answer answer = doubts().empty() ? broken.is_empty() : broken.emptiness();
  if (answer.verdict == Verdict::Proved) return {ProofVerdict::Proved, {}, {}, {}};
  // An unknown verdict takes precedence: a doubt only invalidates the counterexample.
  if (answer.verdict == Verdict::Unknown) return {ProofVerdict::Unknown, {}, answer.reason, {}};
  if (!doubts().empty()) return {ProofVerdict::Unknown, {}, doubts(), {}};
  return depending(broken, {ProofVerdict::Refuted, answer.witness, {}, {}}, violation, budget);
}

Finding Query::depending(const IntegerSet& broken, Finding refuted, const Expr& violation, Budget& budget) const {
  std::vector<VarRef> used;
  for (const VarRef& var : given_) {
    bool mentioned = mentions(violation, var.get());
    for (size_t i = ranges_; i < conditions().size(); ++i) mentioned |= mentions(conditions()[i], var.get());
    if (mentioned) used.push_back(var);
  }
  const IntegerSet runs(budget.engine, vars(), conjunction(conditions()), {}, translation());
  const IntegerSet values = broken.projected(used);
  if (used.empty() || runs.projected(used).is_subset_of(values).verdict == Verdict::Proved) return refuted;
  Finding out;
  std::string names = join(used, ", ", [](const VarRef& var) { return fmt::format("'{}'", var->name); });
  out.reason = fmt::format("it depends on {}", names);
  const bool plain = std::none_of(used.begin(), used.end(), [](const VarRef& var) {
    return var->dtype.code == TypeCode::UInt && var->dtype.bits == 64;  // the host's integers are signed
  });
  if (!plain) return out;
  Expr legal = bool_imm(true);
  for (const VarRef& dim : model().function->dims) {
    if (std::find(used.begin(), used.end(), dim) != used.end())
      legal = logical_and(legal, apply(Op::Le, {int_imm(0), Expr(dim)}));
  }
  for (const Assumption& each : model().function->assumptions) {
    const bool others = std::any_of(given_.begin(), given_.end(), [&](const VarRef& var) {
      return mentions(each.condition, var.get()) && std::find(used.begin(), used.end(), var) == used.end();
    });
    if (!others) legal = logical_and(legal, each.condition);
  }
  const IntegerSet calls(budget.engine, used, legal);
  const std::optional<Expr> needed = values.condition_outside(calls, kConditionLimit);
  if (!needed) {
    out.reason += ", by no simple condition";
    return out;
  }
  return {ProofVerdict::Checked, std::move(refuted.witness), {}, *needed};
}

CallCondition call_condition(const Function& f, const Expr& condition, const std::string& claim, const Span& span,
                             std::vector<Note> notes) {
  notes.insert(notes.begin(), {span, fmt::format("{} only then", claim)});
  return call_condition(f, condition, span, std::move(notes));
}

CallCondition call_condition(const Function& f, const Expr& condition, const Span& span, std::vector<Note> notes) {
  Diagnostic found{Code::CallCondition, span, {{"kernel", f.name}, {"condition", to_text(condition)}}, notes, {}};
  found.notes = found.notes_and_calls();
  found.span = {};
  return {condition, std::move(found)};
}

void weaken(Proof& proof, ProofVerdict verdict, const std::string& reason) {
  auto rank = [](ProofVerdict v) {
    return v == ProofVerdict::Proved ? 0 : v == ProofVerdict::Checked ? 1 : v == ProofVerdict::Unknown ? 2 : 3;
  };
  if (rank(verdict) <= rank(proof.verdict)) return;
  proof.verdict = verdict;
  proof.reason = reason;
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
