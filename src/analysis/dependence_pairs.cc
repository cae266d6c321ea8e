// The instances of a dependence, from the cheapest question to the relation.
// Conditions of the two paths and of one element are made once; orders that they contradict are left out of the
// relation, which is a union over those that are left.
#include "dependence_pairs.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/analysis/path_conditions.h"
#include "helve/arith/relation_algebra.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/tensor/call_facts.h"
#include "same_element.h"

namespace helve {

/// The conditions on two instances, and what has been found out with them.
struct Dependence::Question {
  bool prepared = false;
  std::vector<Expr> conditions, touching;
  std::vector<VarRef> vars;  ///< of the conditions, those of loops around the region first
  size_t outside = 0;  ///< how many these are
  std::unordered_set<const Var*> fixed;
  std::vector<VarRef> unknown;  ///< names, which matter only where they are used
  Substitution renamed;  ///< variables of the second instance
  std::string doubts;
  std::vector<std::optional<bool>> never = {};  ///< of each order
  bool has_pairs = false;  ///< is it known which they are?
  std::optional<IntegerRelation> pairs = {};
};

std::shared_ptr<Dependence::Question> new_question() { return std::make_shared<Dependence::Question>(); }

namespace {

/// Makes the conditions of a question.
class Preparation {
 public:
  Preparation(const Dependences& d, const Dependence& each) : d_(d), each_(each), query_(d.model) {}

  void run() {
    Dependence::Question& out = *each_.question;
    const RegionStatement &first = d_.statements[each_.first], &second = d_.statements[each_.second];
    const auto access = [&](const std::optional<size_t>& n) { return n ? &d_.model.accesses[*n] : nullptr; };
    const Access *a = access(each_.first_access), *b = access(each_.second_access);
    for (size_t v = 0; v < second.vars.size(); ++v) renamed_[second.vars[v].get()] = Expr(each_.second_vars[v]);
    for (const Expr& condition : conditions_of_calls(*d_.function)) query_.require(condition);
    for (const StepRef& step : d_.model.around) {
      if (says_something(*step)) query_.add(*step);
    }
    out.outside = query_.vars().size();
    for (const VarRef& var : query_.vars()) out.fixed.insert(var.get());
    for (const VarRef& dim : d_.function->dims) out.fixed.insert(dim.get());
    add_path(a ? a->path : first.path);
    const Path& path = b ? b->path : second.path;
    for (size_t i = d_.model.around.size(); i < path.size(); ++i) rename(*path[i]);
    add_path(path, renamed_);
    if (a && b) meet(first, second, *a, *b);
    out.conditions = query_.conditions();
    out.vars = query_.vars();
    out.renamed = renamed_;
    out.doubts = query_.doubts();
    out.never.resize(each_.orders.size());
    out.prepared = true;
  }

 private:
  void rename(const Step& step) {
    for (const VarRef& var : step.vars) {
      if (!renamed_.contains(var.get())) renamed_[var.get()] = Expr(make_var(var->name, var->dtype, var->span));
    }
  }

  void add_path(const Path& path, const Substitution& renamed = {}) {
    for (size_t i = d_.model.around.size(); i < path.size(); ++i) {
      const Step& step = *path[i];
      if (says_something(step) || step.vars.empty()) {
        query_.add(step, renamed);
        continue;
      }
      for (const VarRef& var : step.vars) {
        const auto now = renamed.find(var.get());
        const VarRef name = now == renamed.end() ? var : VarRef(as<Var>(now->second));
        each_.question->unknown.push_back(name);
        query_.add_variable(name);
      }
    }
  }

  void meet(const RegionStatement& first, const RegionStatement& second, const Access& a, const Access& b) {
    if (a.buffer != b.buffer) {
      return query_.doubt(fmt::format("'{}' and '{}' may share memory", a.buffer->name, b.buffer->name));
    }
    const bool absolute = a.placed != b.placed || (a.placed && common_loops(first, second) == 0);
    each_.question->touching = {same_element(query_, a, b, renamed_, absolute).condition};
    query_.require(each_.question->touching[0]);
  }

  const Dependences& d_;
  const Dependence& each_;
  PathConditions query_;
  Substitution renamed_;  ///< variables of the second instance
};

Dependence::Question& prepared(const Dependences& d, const Dependence& each) {
  if (!each.question->prepared) Preparation(d, each).run();
  return *each.question;
}

/// What holds of the numbers of both instances.
Facts facts_of(const Dependences& d, const Dependence& each) {
  PathConditions query(d.model);
  for (const StepRef& step : d.model.around) {
    if (says_something(*step)) query.add(*step);
  }
  const auto add = [&](const std::optional<size_t>& access, size_t statement, const Substitution& renamed) {
    const Path& path = access ? d.model.accesses[*access].path : d.statements[statement].path;
    for (size_t i = d.model.around.size(); i < path.size(); ++i) {
      if (says_something(*path[i])) query.add(*path[i], renamed);
    }
  };
  add(each.first_access, each.first, {});
  add(each.second_access, each.second, each.question->renamed);
  return query.facts();
}

/// The relation of the orders that are possible; nothing if it is empty.
std::optional<IntegerRelation> relation(const Dependences& d, const Dependence& each) {
  std::vector<Expr> cases;
  for (size_t n = 0; n < each.orders.size(); ++n) {
    if (d.never(each, n)) continue;
    cases.push_back(each.orders[n].empty() ? bool_imm(true) : conjunction(each.orders[n]));
  }
  if (cases.empty()) return std::nullopt;
  const Dependence::Question& q = *each.question;
  const RegionStatement& first = d.statements[each.first];
  std::vector<VarRef> tuple = first.vars;
  tuple.insert(tuple.end(), each.second_vars.begin(), each.second_vars.end());
  std::vector<VarRef> locals;
  for (size_t i = q.outside; i < q.vars.size(); ++i) {
    if (std::find(tuple.begin(), tuple.end(), q.vars[i]) == tuple.end()) locals.push_back(q.vars[i]);
  }
  std::vector<Expr> conditions = q.conditions;
  conditions.push_back(chain(Op::Or, cases));
  const Expr condition = conjunction(conditions);
  std::string doubts = q.doubts;
  for (const VarRef& var : q.unknown) {
    if (doubts.empty() && mentions(condition, var.get())) {
      doubts = fmt::format("the value of '{}' is not known", var->name);
    }
  }
  const Facts facts = facts_of(d, each);
  const Translation translation{&facts, &d.model.constant};
  IntegerSet set(d.engine, std::move(tuple), condition, std::move(locals), translation);
  if (!doubts.empty()) set = as_superset(set, doubts);
  if (set.emptiness().verdict == Verdict::Proved) return std::nullopt;
  return relation_of(set, first.vars.size());
}

}  // namespace

const std::vector<Expr>& Dependences::touching(const Dependence& each) const { return prepared(*this, each).touching; }

bool Dependences::never(const Dependence& each, size_t order) const {
  Dependence::Question& q = prepared(*this, each);
  std::optional<bool>& known = q.never[order];
  if (!known) {
    std::vector<Expr> all = q.conditions;
    all.insert(all.end(), each.orders[order].begin(), each.orders[order].end());
    known = contradictions->found(all, q.fixed, q.conditions.size());
  }
  return *known;
}

const std::optional<IntegerRelation>& Dependences::pairs(const Dependence& each) const {
  Dependence::Question& q = prepared(*this, each);
  if (!q.has_pairs) q.pairs = relation(*this, each);
  q.has_pairs = true;
  return q.pairs;
}

}  // namespace helve
