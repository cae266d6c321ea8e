// Relations between instances and the times of others that touch the same element.
// What stands around the region is a parameter; variables inside of it belong to one of the two instances.
#include "times.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/analysis/dependence.h"
#include "helve/analysis/instance_pair.h"
#include "helve/analysis/region_order.h"
#include "helve/arith/relation_algebra.h"
#include "helve/ir/expr/chain.h"

namespace helve::legality {

Expr equal(const Expr& a, const Expr& b) { return apply(Op::Eq, {a, b}); }

PathQuery::PathQuery(const AccessModel& model)
    : model_(model), path_(conditions_around(model)), outside_(path_.vars().size()) {}

void PathQuery::add(const Path& path, const Substitution& renamed) {
  for (size_t i = model_.around.size(); i < path.size(); ++i) {
    if (says_something(*path[i]) || path[i]->vars.empty()) path_.add(*path[i], renamed);
  }
}

IntegerRelation PathQuery::relation(const ExactEngine& engine, const std::vector<VarRef>& tuple,
                                    const std::vector<Expr>& image) const {
  std::vector<VarRef> locals;
  for (size_t i = outside_; i < path_.vars().size(); ++i) {
    const VarRef& var = path_.vars()[i];
    const bool known = std::find(tuple.begin(), tuple.end(), var) != tuple.end() ||
                       std::find(locals.begin(), locals.end(), var) != locals.end();
    if (!known) locals.push_back(var);
  }
  const Translation translation = path_.translation();
  return IntegerRelation(engine, tuple, image, conjunction(path_.conditions()), locals, translation);
}

std::optional<size_t> unordered_around(const AccessModel& model, const Buffer& buffer) {
  const auto is_one = [](const Expr& e) {
    const int64_t* value = int_value(e);
    return value && *value == 1;
  };
  const auto home = model.home.find(&buffer);
  for (size_t i = model.around.size(); i-- > (home == model.home.end() ? 0 : home->second.size());) {
    const Step& step = *model.around[i];
    if (!step.stmt || step.begins.empty() || !is_independent(*step.stmt)) continue;
    if (!std::all_of(step.extents.begin(), step.extents.end(), is_one)) return i;
  }
  return std::nullopt;
}

namespace {

std::vector<Expr> begins_of(const Access& access) {
  std::vector<Expr> out;
  for (const Range& range : access.ranges) out.push_back(range.begin);
  return out;
}

}  // namespace

Times::Times(const ExactEngine& engine, const AccessModel& model, const std::vector<RegionStatement>& statements)
    : engine_(engine), model_(model), statements_(statements) {
  size_t entries = 0;
  for (const RegionStatement& s : statements) entries = std::max(entries, s.loops.size() + s.vars.size() + 1);
  for (size_t n = 0; n < entries; ++n) names_.push_back(make_var("t"));
}

void Times::doubt(const std::string& reason) {
  if (doubt_.empty()) doubt_ = reason;
}

bool Times::allocates(const Buffer& buffer) const {
  const auto home = model_.home.find(&buffer);
  return home != model_.home.end() && home->second.size() >= model_.around.size() &&
         std::equal(model_.around.begin(), model_.around.end(), home->second.begin()) &&
         std::any_of(model_.visits.begin(), model_.visits.end(), [&](const Visit& visit) {
           return visit.stmt->kind == StmtKind::Alloc && static_cast<const Alloc*>(visit.stmt)->buffer.get() == &buffer;
         });
}

bool Times::is_forgotten_at(const RegionStatement& s, const Buffer& buffer) const {
  const auto inner = s.loops.begin() + static_cast<int64_t>(std::min(loops_around(model_, buffer), s.loops.size()));
  return std::any_of(inner, s.loops.end(), [&](const StepRef& loop) { return is_forgotten(*loop->stmt, buffer); });
}

std::vector<Expr> Times::of(const RegionStatement& s) const {
  std::vector<Expr> out;
  for (const StepRef& loop : s.loops) {
    out.push_back(int_imm(static_cast<int64_t>(loop->visit)));
    for (const VarRef& var : loop->vars) out.emplace_back(var);
  }
  out.push_back(int_imm(static_cast<int64_t>(s.visit)));
  out.resize(entries(), int_imm(0));
  return out;
}

bool Times::is_simple(const RegionStatement& s, const Access& access) {
  bool simple = !access.tiles && !access.placed && !access.queue && access.executor == Executor::Path &&
                !is_atomic(access.mode) && !s.orders_all && !s.starts_copy && s.stmt->kind != StmtKind::While;
  for (const Range& range : access.ranges) {
    simple &= range.point;
    if (changes(range.begin, model_.constant)) doubt("a subscript reads memory that is written");
  }
  size_t loops = 0;
  for (size_t i = model_.around.size(); i < access.path.size(); ++i) loops += !access.path[i]->begins.empty();
  simple &= loops == s.loops.size();
  if (!simple) doubt(fmt::format("'{}' is not the access of one element by one iteration", text_of(access)));
  return simple;
}

IntegerRelation Times::nothing(std::vector<VarRef> tuple) const {
  return IntegerRelation(engine_, std::move(tuple), std::vector<Expr>(entries(), int_imm(0)), bool_imm(false));
}

std::optional<IntegerRelation> Times::meetings(const RegionStatement& s, const Access& access, const RegionStatement& t,
                                               const Access& other, When when,
                                               const std::vector<std::pair<Expr, Expr>>& also) {
  PathQuery query(model_);
  InstancePair two(query.conditions());
  two.separate(other.path, model_.around.size());
  const Buffer& buffer = *access.buffer;
  const size_t home = loops_around(model_, buffer), common = common_loops(t, s);
  const RegionStatement &earlier = when == When::Before ? t : s, &later = when == When::Before ? s : t;
  for (size_t l = std::max(home, common); l < later.loops.size(); ++l) {
    if (is_forgotten(*later.loops[l]->stmt, buffer)) return std::nullopt;
  }
  for (size_t l = std::max(home, common); l < earlier.loops.size(); ++l) {
    if (!is_forgotten(*earlier.loops[l]->stmt, buffer)) continue;
    doubt(fmt::format("which iteration of a T.Persistent loop wrote '{}' last is not known", buffer.name));
  }
  const auto agree = [&](const VarRef& var) { return two.agree(var); };
  const auto apart = [&](size_t l, const VarRef& var) {
    if (l < home || is_forgotten(*s.loops[l]->stmt, buffer)) return Expr();
    return when == When::Before ? two.after(var) : two.before(var);
  };
  const OrderCases cases =
      order_cases(s, t, agree, apart, when == When::Before ? t.visit < s.visit : s.visit < t.visit);
  if (cases.empty()) return std::nullopt;
  query.add(access.path);
  query.add(other.path, two.renamed());
  query.require(any_of(cases));
  two.touch(begins_of(access), begins_of(other));
  for (const auto& [here, then] : also) query.require(equal(here, two.second(then)));
  if (!query.doubts().empty()) doubt(query.doubts());
  std::vector<Expr> image;
  for (const Expr& entry : of(t)) image.push_back(two.second(entry));
  return query.relation(engine_, s.vars, image);
}

IntegerRelation Times::instances(const RegionStatement& s, const Access& access, const std::vector<Expr>& image) {
  PathQuery query(model_);
  query.add(access.path);
  if (!query.doubts().empty()) doubt(query.doubts());
  return query.relation(engine_, s.vars, image);
}

IntegerSet Times::touched(const Buffer& buffer, const std::vector<VarRef>& element, bool reads) {
  IntegerSet out(engine_, element, bool_imm(false));
  for (const RegionStatement& s : statements_) {
    for (size_t a = s.first; a < s.last; ++a) {
      const Access& access = model_.accesses[a];
      if (access.buffer.get() != &buffer || (!access.write && !reads) || !is_simple(s, access)) continue;
      PathQuery query(model_);
      query.add(access.path);
      for (size_t d = 0; d < element.size(); ++d) query.require(equal(Expr(element[d]), access.ranges[d].begin));
      if (!query.doubts().empty()) doubt(query.doubts());
      out = union_of(out, domain_of(query.relation(engine_, element, {})));
    }
  }
  return out;
}

}  // namespace helve::legality
