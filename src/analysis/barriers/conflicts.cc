// The conflict of a pair: by ranges, by the stride of the thread, by isl.
// The cheap tests come first and decide most pairs.
#include "conflicts.h"

#include <cstdlib>

#include "helve/arith/facts.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/visit.h"

namespace helve::barriers {

namespace {

constexpr int64_t kOperations = 20'000;  // of isl for one pair, a few milliseconds
constexpr size_t kFewGuards = 16;        // that are simplified under each other
constexpr int kMaxQueries = 32;           // of isl for one later access

/// Two accesses with distinct names for the variables that they do not share.
class Pair {
 public:
  Pair(const BlockAccess& a, const BlockAccess& b, bool carried, const AccessTable& table)
      : a_(a), b_(b), carried_(carried) {
    for (const VarRange& range : a.inner) rename(range.var.get());
    if (!carried) return;
    for (const VarRange& range : a.loop->ranges) rename(range.var.get());
    // A name has a different value in each iteration.
    const auto name = [&](const Expr& e) {
      if (!e) return;
      walk(e, [&](const Expr& node) {
        const Var* var = as<Var>(node);
        if (var && table.depth_of(var) == a.loop->depth) rename(var);
      });
    };
    for (const Expr& index : a.indices) name(index);
    for (const Expr& condition : a.conditions) name(condition);
    for (const VarRange& range : a.inner) {
      name(range.begin);
      name(range.extent);
    }
  }

  Expr earlier(const Expr& e) const { return substitute(e, renamed_); }

  /// Does each element belong to one thread only? True if the indices of some dimension are stride * thread + rest on
  /// both sides, and the rests differ by less than the stride. This decides most pairs, a hundred times faster than
  /// isl.
  bool threads_are_named() const {
    if (!a_.thread || !b_.thread) return false;
    const Expr one = earlier(Expr(a_.thread)), other(b_.thread);
    Facts facts;
    for (const VarRange& range : a_.inner) {
      if (!range.begin || !range.extent) continue;
      facts.bind_loop(VarRef(as<Var>(earlier(Expr(range.var)))), earlier(range.begin), earlier(range.extent));
    }
    for (const VarRange& range : b_.inner) {
      if (range.begin && range.extent) facts.bind_loop(range.var, range.begin, range.extent);
    }
    for (size_t d = 0; d < a_.indices.size(); ++d) {
      if (!a_.indices[d] || !b_.indices[d]) continue;
      const int64_t step = coefficient_of(sum_of(b_.indices[d]), b_.thread.get()).value_or(0);
      if (step == 0 || step == INT64_MIN) continue;
      const Expr rest = simplify(earlier(a_.indices[d]) - b_.indices[d] - (one - other) * int_imm(step));
      if (mentions(rest, as<Var>(one)) || mentions(rest, as<Var>(other))) continue;
      if (interval_of(rest, facts).within(1 - std::abs(step), std::abs(step) - 1)) return true;
    }
    return false;
  }

  /// The condition under which they conflict, over `vars`. If there are many guards, each part is simplified under the
  /// ranges alone, not under the parts before it.
  Expr conflict(std::vector<VarRef>* vars) const {
    Facts facts;
    std::vector<Expr> all;
    const bool few = guards(a_) + guards(b_) <= kFewGuards;
    const auto bound = [&](const VarRange& range, bool of_earlier) {
      const auto now = [&](const Expr& e) { return of_earlier ? earlier(e) : e; };
      const VarRef var(as<Var>(now(Expr(range.var))));
      vars->push_back(var);
      if (range.begin) all.push_back(apply(Op::Le, {now(range.begin), Expr(var)}));
      if (!range.begin || !range.extent) return;
      all.push_back(less(Expr(var), now(range.begin) + now(range.extent)));
      facts.bind_loop(var, now(range.begin), now(range.extent));
    };
    std::vector<const BlockLoop*> around;
    for (const BlockLoop* loop = b_.loop; loop; loop = loop->parent) around.push_back(loop);
    for (auto loop = around.rbegin(); loop != around.rend(); ++loop) {
      for (const VarRange& range : (*loop)->ranges) bound(range, false);
    }
    if (carried_) {
      for (const VarRange& range : a_.loop->ranges) bound(range, true);
    }
    for (const VarRange& range : b_.inner) bound(range, false);
    for (const VarRange& range : a_.inner) bound(range, true);
    const auto require = [&](const Expr& e) { all.push_back(few ? e : simplify(e, facts)); };
    if (carried_ && a_.loop->ranges.size() == 1) {
      const Expr var(a_.loop->ranges[0].var);
      require(less(earlier(var), var));
    }
    for (const Expr& e : b_.conditions) require(e);
    for (const Expr& e : a_.conditions) require(earlier(e));
    if (a_.thread && b_.thread) require(apply(Op::Ne, {earlier(Expr(a_.thread)), Expr(b_.thread)}));
    for (size_t d = 0; d < a_.indices.size(); ++d) {
      if (a_.indices[d] && b_.indices[d]) require(apply(Op::Eq, {earlier(a_.indices[d]), b_.indices[d]}));
    }
    const Expr met = conjunction(all);
    return few ? simplify(met) : met;
  }

 private:
  static size_t guards(const BlockAccess& access) {
    size_t count = 0;
    for (const Expr& condition : access.conditions) {
      walk(condition, [&](const Expr& node) { count += node->dtype.is_bool(); });
    }
    return count;
  }

  void rename(const Var* var) {
    if (!renamed_.contains(var)) renamed_.emplace(var, Expr(make_var(var->name, var->dtype)));
  }

  const BlockAccess& a_;
  const BlockAccess& b_;
  bool carried_;
  Substitution renamed_;
};

}  // namespace

ConflictQueries::ConflictQueries(const FunctionRef& f, AccessTable& table, Separator separator)
    : function_(f), table_(table), separator_(separator), engine_(kOperations) {}

bool ConflictQueries::may_conflict(const BlockAccess& a, const BlockAccess& b) const {
  if (separator_ == Separator::Fence) return a.write && !a.in_async_proxy && b.in_async_proxy;
  if (separator_ == Separator::Arrival) return a.write && a.in_async_proxy && is_global(*a.buffer);
  if (a.write && b.write) return a.mode != b.mode || !is_atomic(a.mode);
  return a.write || b.write;
}

bool ConflictQueries::places_apart(AccessId a, AccessId b, bool carried) const {
  const std::vector<Place>&one = table_.places(a), &other = table_.places(b);
  for (size_t d = 0; d < one.size(); ++d) {
    if (!one[d].base || one[d].base != other[d].base) continue;
    if (carried && one[d].depth == table_.depth(a)) continue;  // the base differs between iterations
    if (intersect(one[d].offset, other[d].offset).is_empty()) return true;
    if (!intersect(one[d].step, other[d].step)) return true;
  }
  return false;
}

Conflict ConflictQueries::ask(AccessId a, AccessId b, bool carried) {
  const size_t depth = std::min(table_.depth(a), table_.depth(b));
  a = table_.seen_from(a, depth);
  b = table_.seen_from(b, depth);
  ++work_.pairs;
  if (table_.memory(a) != table_.memory(b)) return Conflict::None;
  const BlockAccess &one = table_.access(a), &other = table_.access(b);
  if (!may_conflict(one, other)) return Conflict::None;
  if (one.buffer != other.buffer) {  // tensors that share memory may overlap anywhere
    return may_overlap(function_->may_alias, one.buffer.get(), other.buffer.get()) ? Conflict::Possible
                                                                                   : Conflict::None;
  }
  if (places_apart(a, b, carried)) return Conflict::None;
  const uint64_t key = (uint64_t{a} << 32 | b) << 1 | static_cast<uint64_t>(carried);
  const auto [it, fresh] = answers_.emplace(key, Conflict::Undecided);
  if (!fresh) return it->second;
  const Pair pair(one, other, carried, table_);
  if (pair.threads_are_named()) return it->second = Conflict::None;
  if (++queries_[b] > kMaxQueries) return it->second;
  ++work_.queries;
  std::vector<VarRef> vars(function_->dims.begin(), function_->dims.end());
  vars.insert(vars.end(), kernel_->vars.begin(), kernel_->vars.end());
  const Expr conflict = pair.conflict(&vars);
  Translation translation;
  translation.constant = &table_.constant();
  const IntegerSet points(engine_, vars, conflict, {}, translation);
  const Answer answer = points.emptiness();
  if (answer.verdict == Verdict::Proved) return it->second = Conflict::None;
  if (answer.reason == kOverBudget) return it->second;
  const bool certain = answer.verdict == Verdict::Refuted && one.exact && other.exact;
  return it->second = certain ? Conflict::Certain : Conflict::Possible;
}

}  // namespace helve::barriers
