// The instances of a dependence, from the cheapest question to the relation.
// Conditions of the two paths and of one element are made once; orders that they contradict are left out of the
// relation, which is a union over those that are left.
#include "dependence_pairs.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/analysis/instance_pair.h"
#include "helve/analysis/path_conditions.h"
#include "helve/analysis/region_order.h"
#include "helve/arith/relation_algebra.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/tensor/call_facts.h"

namespace helve {

/// The conditions on two instances, and what has been found out with them.
struct Dependence::Question {
  bool prepared = false;
  std::vector<Expr> conditions, touching;
  std::optional<Contradictions::Conjunction> known = {};  ///< the conditions, when somebody asks
  bool apart = false;  ///< do those of touching exclude each other?
  std::vector<VarRef> vars;  ///< of the conditions, those of loops around the region first
  size_t outside = 0;  ///< how many these are
  std::unordered_set<const Var*> fixed;
  std::vector<VarRef> open_names;  ///< which matter only where they are used
  Substitution renamed;  ///< variables of the second instance
  std::string doubts;
  std::vector<std::optional<bool>> never = {};  ///< of each order
  bool has_pairs = false;  ///< is it known which they are?
  std::optional<IntegerRelation> pairs = {};
};

std::shared_ptr<Dependence::Question> new_question() { return std::make_shared<Dependence::Question>(); }

namespace {

const Access* access(const Dependences& d, const std::optional<size_t>& n) {
  return n ? &d.model.accesses[*n] : nullptr;
}

/// Both instances run.
void both_run(const Dependences& d, const Dependence& each, InstancePair& two) {
  const Access *a = access(d, each.first_access), *b = access(d, each.second_access);
  const size_t inside = d.model.around.size();
  const Path& path = b ? b->path : d.statements[each.second].path;
  two.first_runs(a ? a->path : d.statements[each.first].path, inside, InstancePair::Names::Open);
  two.separate(path, inside);
  two.second_runs(path, inside, InstancePair::Names::Open);
}

void meet(const Dependences& d, const Dependence& each, PathConditions& query, InstancePair& two) {
  const Access *a = access(d, each.first_access), *b = access(d, each.second_access);
  if (!a || !b) return;
  if (a->buffer != b->buffer) {
    return query.doubt(fmt::format("'{}' and '{}' may share memory", a->buffer->name, b->buffer->name));
  }
  const bool share_no_loop = common_loops(d.statements[each.first], d.statements[each.second]) == 0;
  const bool absolute = a->placed != b->placed || (a->placed && share_no_loop);
  each.question->touching = {two.touch(*a, *b, absolute).condition};
  query.require(each.question->touching[0]);
}

Dependence::Question& prepared(const Dependences& d, const Dependence& each) {
  Dependence::Question& out = *each.question;
  if (out.prepared) return out;
  PathConditions query = conditions_around(d.model);
  out.outside = query.vars().size();
  for (const VarRef& var : query.vars()) out.fixed.insert(var.get());
  for (const VarRef& dim : d.function->dims) out.fixed.insert(dim.get());
  const std::vector<VarRef>& second = d.statements[each.second].vars;
  for (size_t v = 0; v < second.size(); ++v) out.renamed.emplace(second[v].get(), Expr(each.second_vars[v]));
  InstancePair two(query, out.renamed);
  both_run(d, each, two);
  meet(d, each, query, two);
  out.conditions = query.conditions();
  out.vars = query.vars();
  out.open_names = two.open_names();
  out.renamed = two.renamed();
  out.doubts = query.doubts();
  out.apart = d.contradictions->excluded(d.contradictions->known(out.touching));
  out.never.resize(each.orders.size());
  out.prepared = true;
  return out;
}

/// Do the conditions contradict those of the two instances?
bool contradict(const Dependences& d, Dependence::Question& q, const std::vector<Expr>& conditions) {
  Contradictions& all = *d.contradictions;
  if (!q.known) q.known = all.known(q.conditions);
  return all.found(*q.known, all.known(conditions), q.fixed);
}

/// What is known of the numbers of both instances.
Facts facts_of(const Dependences& d, const Dependence& each) {
  PathConditions query = conditions_around(d.model);
  InstancePair two(query, each.question->renamed);
  both_run(d, each, two);
  return query.facts();
}

/// The relation of the orders that are possible; nothing if it is empty.
std::optional<IntegerRelation> relation(const Dependences& d, const Dependence& each) {
  OrderCases cases;
  for (size_t n = 0; n < each.orders.size(); ++n) {
    if (!d.never(each, n)) cases.push_back(each.orders[n]);
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
  conditions.push_back(any_of(cases));
  const Expr condition = conjunction(conditions);
  std::string doubts = q.doubts;
  for (const VarRef& var : q.open_names) {
    if (doubts.empty() && mentions(condition, var.get())) {
      doubts = fmt::format("the value of '{}' is not known", var->name);
    }
  }
  std::optional<Facts> facts;
  const auto known = [&]() -> const Facts& { return facts ? *facts : facts.emplace(facts_of(d, each)); };
  const Translation translation{known, &d.model.constant};
  IntegerSet set(d.engine, std::move(tuple), condition, std::move(locals), translation);
  if (!doubts.empty()) set = as_superset(set, doubts);
  if (set.emptiness().verdict == Verdict::Proved) return std::nullopt;
  return relation_of(set, first.vars.size());
}

}  // namespace

const std::vector<Expr>& Dependences::touching(const Dependence& each) const { return prepared(*this, each).touching; }

bool Dependences::never(const Dependence& each) const { return prepared(*this, each).apart; }

bool Dependences::never(const Dependence& each, const Expr& condition) const {
  Dependence::Question& q = prepared(*this, each);
  return q.apart || contradict(*this, q, {condition});
}

bool Dependences::never(const Dependence& each, size_t order) const {
  Dependence::Question& q = prepared(*this, each);
  if (q.apart) return true;
  std::optional<bool>& known = q.never[order];
  if (!known) known = contradict(*this, q, each.orders[order]);
  return *known;
}

const std::optional<IntegerRelation>& Dependences::pairs(const Dependence& each) const {
  Dependence::Question& q = prepared(*this, each);
  if (!q.has_pairs) q.pairs = relation(*this, each);
  q.has_pairs = true;
  return q.pairs;
}

}  // namespace helve
