// Do partial results of a reduction become the result?
// An update of a cell of partial results counts when the cell is merged. So the cell must be filled with the identity
// before it, with nothing but updates in between, and merged next, into the element that the old update is of; accesses
// of that element that do not reduce it by the same operator must be in their order with the merge. A cell may begin
// with the value of an update in the place of the identity and that. What else touches a cell, or where any of this is
// not known, is refused. Iterations without order are asked about in iterations.cc.
#include <fmt/format.h>

#include <algorithm>

#include "helve/analysis/path_conditions.h"
#include "helve/arith/lexicographic.h"
#include "helve/arith/relation_algebra.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/tensor/combine.h"
#include "rewrite.h"
#include "times.h"

namespace helve::legality {

namespace {

/// An access of a cell, by a statement of the new region.
struct Event {
  const RegionStatement* statement;
  const Access* access;
  std::vector<Expr>
      into;  ///< of a merge, or of an update: the element of the reduction, over the statement's variables
};

class ReductionCheck {
 public:
  explicit ReductionCheck(const Rewrite& rewrite)
      : rewrite_(rewrite),
        engine_(rewrite.before.engine),
        times_(engine_, rewrite.after, rewrite.statements),
        ends_(rewrite.copies.size()) {
    out_.verdict = Verdict::Proved;
  }

  Legality run() {
    for (const Partial& partial : rewrite_.partials) {
      if (times_.allocates(*partial.into) || rewrite_.staged.contains(partial.into) ||
          rewrite_.staged.contains(partial.memory)) {
        return unknown(fmt::format("'{}' lives inside of what is changed", partial.into->name));
      }
      if (!collect(partial)) return unknown(other_);
      if (!times_.doubts().empty()) return unknown(times_.doubts());
      for (const auto& [copy, event] : updates_) {
        const bool begins = event.access->mode == StoreMode::Write;
        if ((!begins && worsen(out_, is_filled(event))) || worsen(out_, is_merged(copy, event))) return out_;
      }
      for (const Event& merge : merges_) {
        if (worsen(out_, is_filled(merge)) || worsen(out_, is_inside(partial, merge))) return out_;
      }
    }
    for (const Dependence& each : rewrite_.before.list) {
      if (keeps_order(each)) return out_;
    }
    if (!rewrite_.partials.empty()) out_.reassociates = true;
    return out_;
  }

 private:
  static Legality unknown(const std::string& reason) {
    Legality out;
    out.reason = reason;
    return out;
  }

  /// The accesses of the cells, by kind; false if there is another one, or another value that fills them.
  bool collect(const Partial& partial) {
    fills_.clear();
    merges_.clear();
    updates_.clear();
    for (const RegionStatement& s : rewrite_.statements) {
      for (size_t a = s.first; a < s.last; ++a) {
        const Access& access = rewrite_.after.accesses[a];
        if (access.buffer.get() != partial.memory) continue;
        if (!times_.is_simple(s, access)) return refuse(access, "is not the access of one element");
        if (!add(partial, s, access)) return false;
      }
    }
    return true;
  }

  bool add(const Partial& partial, const RegionStatement& s, const Access& access) {
    const auto by_statement = [&](const Copy& copy) { return copy.now == &s; };
    const auto copy = std::find_if(rewrite_.copies.begin(), rewrite_.copies.end(), by_statement);
    const Store* store = s.stmt->kind == StmtKind::Store ? static_cast<const Store*>(s.stmt) : nullptr;
    if (copy != rewrite_.copies.end()) {
      const bool begins = access.write && access.mode == StoreMode::Write;
      if (!store || store->buffer.get() != partial.memory || (access.mode != partial.mode && !begins)) {
        return refuse(access, "is read before it is merged");
      }
      if (access.write) {
        const size_t at = static_cast<size_t>(copy - rewrite_.copies.begin());
        updates_.emplace_back(at, Event{&s, &access, old_element(*copy)});
        if (begins) fills_.push_back(updates_.back().second);
      }
      return true;
    }
    if (rewrite_.merged_by(*s.stmt)) {
      Event merge{&s, &access, {}};
      for (size_t m = s.first; m < s.last; ++m) {
        const Access& into = rewrite_.after.accesses[m];
        if (into.write && !times_.is_simple(s, into)) return refuse(into, "is not the access of one element");
        if (into.write) merge.into = subscripts(into);
      }
      merges_.push_back(std::move(merge));
      return true;
    }
    if (!store || !same_expr(store->value, identity_imm(partial.mode, partial.memory->dtype))) {
      return refuse(access, "is filled with another value than the identity");
    }
    fills_.push_back({&s, &access, {}});
    return true;
  }

  bool refuse(const Access& access, const std::string& what) {
    other_ = fmt::format("'{}' {}", text_of(access), what);
    return false;
  }

  static std::vector<Expr> subscripts(const Access& access) {
    std::vector<Expr> out;
    for (const Range& range : access.ranges) out.push_back(range.begin);
    return out;
  }

  /// The element that the old update is of, over the variables of the new one.
  std::vector<Expr> old_element(const Copy& copy) {
    const RegionStatement& was = rewrite_.was(copy);
    std::vector<Expr> out;
    for (size_t a = was.first; a < was.last; ++a) {
      const Access& access = rewrite_.before.model.accesses[a];
      if (!access.write) continue;
      if (!times_.is_simple(was, access)) break;  // doubted
      for (const Expr& e : subscripts(access)) out.push_back(substitute(e, copy.values));
    }
    return out;
  }

  /// { instance of the event -> times of others of its cell }.
  IntegerRelation meetings(const Event& event, const std::vector<Event>& others, When when, bool same_element = false) {
    IntegerRelation out = times_.nothing(event.statement->vars);
    for (const Event& other : others) {
      std::vector<std::pair<Expr, Expr>> also;
      for (size_t d = 0; same_element && d < event.into.size(); ++d) also.emplace_back(event.into[d], other.into[d]);
      const auto found = times_.meetings(*event.statement, *event.access, *other.statement, *other.access, when, also);
      if (found) out = union_of(out, *found);
    }
    return out;
  }

  IntegerSet instances(const Event& event) { return domain_of(times_.instances(*event.statement, *event.access, {})); }

  /// Is the last fill or merge of the cell before each instance a fill?
  Legality is_filled(const Event& event) {
    const IntegerRelation fills = meetings(event, fills_, When::Before);
    const IntegerRelation last = greatest_images(union_of(fills, meetings(event, merges_, When::Before)));
    Legality out = found(event, instances(event).is_subset_of(domain_of(last)), RewriteFault::Filled);
    worsen(out, found(event, last.is_subset_of(fills), RewriteFault::Filled));
    return out;
  }

  /// Is the first fill or merge of the cell after each update a merge into the element that the old one updates?
  Legality is_merged(size_t copy, const Event& update) {
    const IntegerRelation right = meetings(update, merges_, When::After, true);
    const IntegerRelation merges = meetings(update, merges_, When::After);
    const IntegerRelation next = least_images(union_of(meetings(update, fills_, When::After), merges));
    Legality out = found(update, instances(update).is_subset_of(domain_of(next)), RewriteFault::Merged);
    worsen(out, found(update, next.is_subset_of(right), RewriteFault::Merged));
    ends_[copy] = next;
    return out;
  }

  /// Are only elements merged that the old region updates, or that its surroundings leave alone otherwise?
  Legality is_inside(const Partial& partial, const Event& merge) {
    const Buffer& into = *partial.into;
    std::vector<VarRef> element;
    for (size_t d = 0; d < into.rank(); ++d) element.push_back(make_var(fmt::format("{}.{}", into.name, d)));
    PathQuery query(rewrite_.after);
    query.add(merge.access->path);
    for (size_t d = 0; d < into.rank(); ++d) query.require(equal(Expr(element[d]), merge.into[d]));
    const IntegerSet merged = domain_of(query.relation(engine_, element, {}));
    const auto is_within = [&](const IntegerSet& set) { return merged.is_subset_of(set).verdict == Verdict::Proved; };
    if (is_within(written(rewrite_.before.model, into, element))) return proved();
    if (const std::optional<size_t> loop = unordered_around(rewrite_.before.model, into)) {
      Stmt body;
      for_each_part(
          Stmt(rewrite_.before.model.around[*loop]->stmt), [](const Expr&) {}, [&](const Stmt& s) { body = s; });
      if (is_within(written(access_model(*rewrite_.before.function, body), into, element))) return proved();
      return unknown(fmt::format("the merge touches elements of '{}' that the statement may not, and iterations of a "
                                 "loop around it have no order",
                                 into.name));
    }
    std::vector<Expr> within;
    for (size_t d = 0; d < into.rank(); ++d) {
      within.push_back(apply(Op::Le, {int_imm(0), Expr(element[d])}));
      within.push_back(less(Expr(element[d]), into.shape[d]));
    }
    const Answer answer = merged.is_subset_of(IntegerSet(engine_, element, conjunction(within)));
    Legality out;
    out.verdict = answer.verdict;
    out.reason = answer.reason;
    if (answer.verdict != Verdict::Refuted) return out;
    if (!query.doubts().empty()) return unknown(query.doubts());
    out.fault = RewriteFault::Outside;
    const size_t params = answer.witness.size() - into.rank();
    out.given.assign(answer.witness.begin(), answer.witness.begin() + static_cast<int64_t>(params));
    std::vector<int64_t> at;
    for (size_t d = 0; d < into.rank(); ++d) at.push_back(answer.witness[params + d].second);
    out.element = fmt::format("{}[{}]", into.name, fmt::join(at, ", "));
    return out;
  }

  /// Elements that the region certainly writes.
  IntegerSet written(const AccessModel& model, const Buffer& buffer, const std::vector<VarRef>& element) const {
    IntegerSet out(engine_, element, bool_imm(false));
    const std::vector<RegionStatement> statements = region_statements(model);
    for (const RegionStatement& s : statements) {
      for (size_t a = s.first; a < s.last; ++a) {
        const Access& access = model.accesses[a];
        Times times(engine_, model, statements);
        if (access.buffer.get() != &buffer || !access.write || !times.is_simple(s, access)) continue;
        PathQuery query(model);
        query.add(access.path);
        for (size_t d = 0; d < element.size(); ++d) query.require(equal(Expr(element[d]), access.ranges[d].begin));
        const IntegerSet set = domain_of(query.relation(engine_, element, {}));
        if (times.doubts().empty() && query.doubts().empty() && set.inexact().empty()) out = union_of(out, set);
      }
    }
    return out;
  }

  static Legality proved() {
    Legality out;
    out.verdict = Verdict::Proved;
    return out;
  }

  /// { old instance of the copy's statement -> when the access counts }.
  IntegerRelation counts(size_t i, bool deferred) {
    const Copy& copy = rewrite_.copies[i];
    const IntegerRelation was = inverse_of(instances_of(rewrite_, copy));
    if (deferred) return composition_of(was, *ends_[i]);
    const std::vector<VarRef>& vars = copy.now->vars;
    return composition_of(was, IntegerRelation(engine_, vars, times_.of(*copy.now), bool_imm(true)));
  }

  /// Asks for all pairs of copies of which one counts when it is merged. Returns whether the rewrite is refuted.
  bool keeps_order(const Dependence& each) {
    for (size_t i = 0; i < rewrite_.copies.size(); ++i) {
      for (size_t k = 0; k < rewrite_.copies.size(); ++k) {
        const Copy &one = rewrite_.copies[i], &other = rewrite_.copies[k];
        if (one.was != each.first || other.was != each.second) continue;
        const bool first = is_deferred(one, each.first_access), second = is_deferred(other, each.second_access);
        if ((first || second) && !reduces_alike(each) && worsen(out_, in_order(each, i, first, k, second))) return true;
      }
    }
    return false;
  }

  /// What orders a statement as a whole, as a barrier, orders its effects as well.
  bool is_deferred(const Copy& copy, const std::optional<size_t>& access) const {
    if (access) return rewrite_.is_deferred(copy, rewrite_.before.model.accesses[*access]);
    const RegionStatement& was = rewrite_.was(copy);
    for (size_t a = was.first; a < was.last; ++a) {
      if (rewrite_.is_deferred(copy, rewrite_.before.model.accesses[a])) return true;
    }
    return false;
  }

  bool reduces_alike(const Dependence& each) const {
    if (!each.first_access || !each.second_access) return false;
    const std::vector<Access>& all = rewrite_.before.model.accesses;
    const Access &a = all[*each.first_access], &b = all[*each.second_access];
    if (a.buffer != b.buffer) return false;
    const auto one = rewrite_.reduces(rewrite_.before.statements[each.first], a);
    return one && one == rewrite_.reduces(rewrite_.before.statements[each.second], b);
  }

  Legality in_order(const Dependence& each, size_t i, bool first, size_t k, bool second) {
    const std::optional<IntegerRelation>& pairs = rewrite_.before.pairs(each);
    if (!pairs) return proved();
    const IntegerRelation turned = inverse_of(before_or_same(engine_, times_.names(), names()));
    const IntegerRelation times = composition_of(counts(i, first), turned);
    const Answer answer = intersection_of(*pairs, composition_of(times, inverse_of(counts(k, second)))).is_empty();
    Legality out;
    out.verdict = answer.verdict;
    out.reason = answer.reason;
    if (!times_.doubts().empty()) return unknown(times_.doubts());
    if (answer.verdict != Verdict::Refuted) return out;
    out.fault = RewriteFault::Turned;
    out.first = old_instance(each.first, each.first_access, answer.witness, out.given);
    out.second = old_instance(each.second, each.second_access, answer.other, out.given);
    return out;
  }

  std::vector<VarRef> names() const {
    std::vector<VarRef> out;
    for (size_t n = 0; n < times_.entries(); ++n) out.push_back(make_var("u"));
    return out;
  }

  Instance old_instance(size_t statement, const std::optional<size_t>& access, const Witness& at,
                        Witness& given) const {
    const RegionStatement& s = rewrite_.before.statements[statement];
    Instance out{s.stmt, {}, {}};
    if (access) out.access = rewrite_.before.model.accesses[*access];
    const size_t params = at.size() - s.vars.size();
    for (size_t v = 0; v < s.vars.size(); ++v) out.at.emplace_back(s.vars[v], at[params + v].second);
    given.assign(at.begin(), at.begin() + static_cast<int64_t>(params));
    return out;
  }

  /// A fault at an instance of the new region.
  Legality found(const Event& event, const Answer& answer, RewriteFault fault) const {
    if (!times_.doubts().empty()) return unknown(times_.doubts());
    Legality out;
    out.verdict = answer.verdict;
    out.reason = answer.reason;
    if (answer.verdict != Verdict::Refuted) return out;
    out.fault = fault;
    out.first = Instance{event.statement->stmt, *event.access, {}};
    const std::vector<VarRef>& vars = event.statement->vars;
    const size_t params = answer.witness.size() - vars.size();
    for (size_t v = 0; v < vars.size(); ++v) out.first->at.emplace_back(vars[v], answer.witness[params + v].second);
    out.given.assign(answer.witness.begin(), answer.witness.begin() + static_cast<int64_t>(params));
    return out;
  }

  const Rewrite& rewrite_;
  const ExactEngine& engine_;
  Times times_;
  std::vector<Event> fills_, merges_;
  std::vector<std::pair<size_t, Event>> updates_;  ///< with the copy that makes them
  std::vector<std::optional<IntegerRelation>> ends_;  ///< of copies: instance -> time of its merge
  std::string other_;
  Legality out_;
};

}  // namespace

Legality check_reductions(const Rewrite& rewrite) {
  if (rewrite.partials.empty()) {
    Legality out;
    out.verdict = Verdict::Proved;
    return out;
  }
  return ReductionCheck(rewrite).run();
}

}  // namespace helve::legality
