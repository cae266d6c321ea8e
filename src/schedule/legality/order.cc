// Are dependent instances in their old order?
// The pairs of old instances become pairs of new ones; those for which the new program has another order are a union
// over the loop whose iterations put them there.
#include <fmt/format.h>

#include <algorithm>

#include "helve/arith/contradictions.h"
#include "helve/arith/relation_algebra.h"
#include "new_pair.h"

namespace helve::legality {

namespace {

class OrderCheck {
 public:
  explicit OrderCheck(const Rewrite& rewrite)
      : rewrite_(rewrite), runs_(rewrite.copies.size()), contradictions_(rewrite.before.engine) {
    for (const Expr& condition : rewrite.given) {
      walk(condition, [&](const Expr& node) { fixed_.insert(as<Var>(node)); });
    }
    for (const VarRef& dim : rewrite.before.function->dims) fixed_.insert(dim.get());
  }

  Legality run() {
    out_.verdict = Verdict::Proved;
    out_.reassociates = rewrite_.form == RegionForm::Operation && rounds_updates();
    for (const Dependence& each : rewrite_.before.list) {
      if (is_staged(each.first_access) || is_staged(each.second_access)) continue;
      if (for_each_pair(each, [&](size_t i, size_t k) { return keeps_order(each, i, k); })) return out_;
    }
    for (const Buffer* buffer : allocated()) {
      if (!rewrite_.staged.contains(buffer) && shares_more(*buffer)) return out_;
    }
    return out_;
  }

 private:
  /// Are there updates whose result depends on their order, or on when it is rounded?
  bool rounds_updates() const {
    return std::any_of(rewrite_.after.accesses.begin(), rewrite_.after.accesses.end(), [](const Access& access) {
      const bool exact = access.mode == StoreMode::Max || access.mode == StoreMode::Min;
      return access.write && is_update(access.mode) && !exact && access.buffer->dtype.is_float();
    });
  }

  bool is_staged(const std::optional<size_t>& access) const {
    return access && rewrite_.staged.contains(rewrite_.before.model.accesses[*access].buffer.get());
  }

  /// Calls `f` with the copies of both statements until it returns true.
  template <class F>
  bool for_each_pair(const Dependence& each, F&& f) const {
    for (size_t i = 0; i < runs_.size(); ++i) {
      for (size_t k = 0; k < runs_.size(); ++k) {
        if (rewrite_.copies[i].was == each.first && rewrite_.copies[k].was == each.second && f(i, k)) return true;
      }
    }
    return false;
  }

  /// The new instances of the two copies whose old ones are pairs of `old`.
  IntegerRelation pairs(const IntegerRelation& old, size_t i, size_t k) {
    return composition_of(composition_of(runs(i), old), inverse_of(runs(k)));
  }
  const IntegerRelation& runs(size_t i) {
    if (!runs_[i]) runs_[i] = instances_of(rewrite_, rewrite_.copies[i]);
    return *runs_[i];
  }

  /// Finds cases without instances, without relations: by what the order of the old instances says of the new ones,
  /// else by all conditions on the two.
  class Impossible {
   public:
    Impossible(OrderCheck& check, const Dependence& each, size_t i, size_t k, const NewPair& pair)
        : check_(check), each_(each), i_(i), k_(k), pair_(pair), values_(check.rewrite_.copies[i].values) {
      const Copy& other = check.rewrite_.copies[k];
      for (size_t v = 0; v < each.second_vars.size(); ++v) {
        const Expr& value = other.values.at(check.rewrite_.was(other).vars[v].get());
        values_[each.second_vars[v].get()] = substitute(value, pair.renamed());
      }
      std::unordered_map<const ExprNode*, Expr> known;
      for (const std::vector<Expr>& order : each.orders) {
        std::vector<Expr> now;
        for (const Expr& condition : order) {
          Expr& here = known[condition.get()];
          if (!here) here = substitute(condition, values_);
          now.push_back(here);
        }
        orders_.push_back(check_.contradictions_.known(now));
      }
    }

    void drop_from(OrderCases& cases) {
      std::erase_if(cases, [&](const std::vector<Expr>& wrong) {
        const Contradictions::Conjunction known = check_.contradictions_.known(wrong);
        for (size_t n = 0; n < orders_.size(); ++n) {
          if (!is_impossible(n, known)) return false;
        }
        return true;
      });
    }

   private:
    bool is_impossible(size_t order, const Contradictions::Conjunction& wrong) {
      Contradictions& contradictions = check_.contradictions_;
      if (contradictions.excluded(orders_[order], wrong) || check_.rewrite_.before.never(each_, order)) return true;
      if (!base_) base_ = contradictions.known(both_run_and_touch());
      Contradictions::Conjunction all = orders_[order];
      all.insert(all.end(), wrong.begin(), wrong.end());
      return contradictions.found(*base_, all, check_.fixed_);
    }

    std::vector<Expr> both_run_and_touch() {
      const Copy &one = check_.rewrite_.copies[i_], &other = check_.rewrite_.copies[k_];
      std::vector<Expr> out = check_.rewrite_.given;
      out.insert(out.end(), one.conditions.begin(), one.conditions.end());
      for (const Expr& condition : other.conditions) out.push_back(check_.renamed(condition, k_, pair_));
      for (const Expr& condition : check_.rewrite_.before.touching(each_)) {
        out.push_back(substitute(condition, values_));
      }
      return out;
    }

    OrderCheck& check_;
    const Dependence& each_;
    const size_t i_, k_;
    const NewPair& pair_;
    Substitution values_;  ///< of the variables of both old instances
    std::vector<Contradictions::Conjunction> orders_;
    std::optional<Contradictions::Conjunction> base_;
  };

  /// A condition of the second copy with names of its own: that of values as well.
  Expr renamed(const Expr& condition, size_t k, const NewPair& pair) {
    Substitution all = pair.renamed();
    for (const VarRef& var : rewrite_.copies[k].locals) {
      auto [at, fresh] = other_locals_.try_emplace(var.get());
      if (fresh) at->second = Expr(make_var(var->name, var->dtype));
      all.emplace(var.get(), at->second);
    }
    return substitute(condition, all);
  }

  bool is_deferred(const std::optional<size_t>& access, size_t i) const {
    return access && rewrite_.is_deferred(rewrite_.copies[i], rewrite_.before.model.accesses[*access]);
  }

  /// Returns whether the rewrite is refuted.
  bool keeps_order(const Dependence& each, size_t i, size_t k) {
    if (each.reduction && rewrite_.form == RegionForm::Operation) return false;  // combined by the operation
    if (is_deferred(each.first_access, i) || is_deferred(each.second_access, k)) return false;
    if (rewrite_.before.never(each)) return false;
    const NewPair pair(*rewrite_.copies[i].now, *rewrite_.copies[k].now);
    Impossible impossible(*this, each, i, k, pair);
    OrderCases against = pair.against_order(!each.reduction, true);
    impossible.drop_from(against);
    if (worsen(out_, ask(against, each, i, k, pair, RewriteFault::Turned))) return true;
    if (each.reduction && !out_.reassociates) {
      OrderCases reordered = pair.against_order(true, false);
      impossible.drop_from(reordered);
      const std::optional<IntegerRelation> some = instances(reordered, each, i, k, pair);
      out_.reassociates = some && pairs_of(*some).emptiness().verdict != Verdict::Proved;
    }
    OrderCases apart = pair.apart(loops_around_memory(each, i));
    impossible.drop_from(apart);
    return worsen(out_, ask(apart, each, i, k, pair, RewriteFault::Memory));
  }

  /// The new instances of a dependence in one of the cases; nothing if there are none.
  std::optional<IntegerRelation> instances(const OrderCases& cases, const Dependence& each, size_t i, size_t k,
                                           const NewPair& pair) {
    if (cases.empty() || !rewrite_.before.pairs(each)) return std::nullopt;
    return intersection_of(pairs(*rewrite_.before.pairs(each), i, k),
                           pair.relation(rewrite_.before.engine, any_of(cases)));
  }

  /// Are there instances in one of the cases, which are wrong?
  Legality ask(const OrderCases& cases, const Dependence& each, size_t i, size_t k, const NewPair& pair,
               RewriteFault fault) {
    const std::optional<IntegerRelation> wrong = instances(cases, each, i, k, pair);
    if (wrong) return found(wrong->is_empty(), each, i, k, pair, fault);
    Legality out;
    out.verdict = Verdict::Proved;
    return out;
  }

  /// The buffer of the new region that the copy uses in the place of the access.
  const Buffer& buffer_now(const Access& access, size_t i) const {
    for (const auto& [made, old] : rewrite_.buffers) {
      if (old != access.buffer) continue;
      const RegionStatement& now = *rewrite_.copies[i].now;
      for (size_t a = now.first; a < now.last; ++a) {
        if (rewrite_.after.accesses[a].buffer.get() == made) return *made;
      }
    }
    return *access.buffer;
  }

  size_t loops_around_memory(const Dependence& each, size_t i) const {
    if (!each.first_access) return 0;
    return loops_around(rewrite_.after, buffer_now(rewrite_.before.model.accesses[*each.first_access], i));
  }

  /// The buffers that the old region allocates in a loop.
  std::vector<const Buffer*> allocated() const {
    std::vector<const Buffer*> out;
    for (const Access& access : rewrite_.before.model.accesses) {
      const Buffer* buffer = access.buffer.get();
      if (loops_around(rewrite_.before.model, *buffer) > 0 && std::find(out.begin(), out.end(), buffer) == out.end()) {
        out.push_back(buffer);
      }
    }
    return out;
  }

  /// Where the new program has one memory for what were several, instances that met in none of these are in their old
  /// order all the same. Returns whether the rewrite is refuted.
  bool shares_more(const Buffer& buffer) {
    if (names_execution(buffer)) return false;
    for (const Dependence& each : dependences_through(rewrite_.before, buffer)) {
      const bool refuted = for_each_pair(each, [&](size_t i, size_t k) {
        const NewPair pair(*rewrite_.copies[i].now, *rewrite_.copies[k].now);
        OrderCases against = pair.against_order(!each.reduction, true);
        const std::vector<Expr> together = pair.in_one_iteration(loops_around_memory(each, i));
        for (std::vector<Expr>& wrong : against) wrong.insert(wrong.end(), together.begin(), together.end());
        Impossible(*this, each, i, k, pair).drop_from(against);
        return worsen(out_, ask(against, each, i, k, pair, RewriteFault::Turned));
      });
      if (refuted) return true;
    }
    return false;
  }

  /// Do the loops around the new allocation determine those around the old one, in one way for all statements?
  bool names_execution(const Buffer& buffer) const {
    const size_t was = loops_around(rewrite_.before.model, buffer);
    struct Execution {
      std::vector<VarRef> now;
      std::vector<Expr> old;
    };
    std::unordered_map<const Buffer*, Execution> known;  // by the memory that is used now
    for (size_t i = 0; i < runs_.size(); ++i) {
      const Copy& copy = rewrite_.copies[i];
      const RegionStatement &old = rewrite_.was(copy), &now = *copy.now;
      const auto uses = [&](const Access& access) { return access.buffer.get() == &buffer; };
      const auto accesses = rewrite_.before.model.accesses.begin();
      const auto end = accesses + static_cast<int64_t>(old.last);
      const auto used = std::find_if(accesses + static_cast<int64_t>(old.first), end, uses);
      if (used == end) continue;
      const Buffer& memory = buffer_now(*used, i);
      const size_t is = loops_around(rewrite_.after, memory);
      Execution execution{variables(now, 0, is), {}};
      const std::vector<VarRef> inner = variables(now, is, now.loops.size());
      for (const VarRef& var : variables(old, 0, was)) {
        const Expr& value = execution.old.emplace_back(copy.values.at(var.get()));
        if (std::any_of(inner.begin(), inner.end(), [&](const VarRef& v) { return mentions(value, v.get()); })) {
          return false;
        }
      }
      const auto [at, fresh] = known.emplace(&memory, execution);
      const Execution& first = at->second;
      const bool alike = first.now == execution.now &&
                         std::equal(first.old.begin(), first.old.end(), execution.old.begin(), execution.old.end(),
                                    [](const Expr& one, const Expr& other) { return same_expr(one, other); });
      if (!fresh && !alike) return false;
    }
    return true;
  }

  /// Of a statement's loops from `from` on and before `to`.
  static std::vector<VarRef> variables(const RegionStatement& s, size_t from, size_t to) {
    std::vector<VarRef> out;
    for (size_t l = from; l < std::min(to, s.loops.size()); ++l) {
      out.insert(out.end(), s.loops[l]->vars.begin(), s.loops[l]->vars.end());
    }
    return out;
  }

  Legality found(const Answer& answer, const Dependence& each, size_t i, size_t k, const NewPair& pair,
                 RewriteFault fault) const {
    Legality out;
    out.verdict = answer.verdict;
    out.reason = answer.reason;
    if (answer.verdict != Verdict::Refuted) return out;
    const Copy &a = rewrite_.copies[i], &b = rewrite_.copies[k];
    out.fault =
        fault == RewriteFault::Turned && pair.at_once(answer.witness, answer.other) ? RewriteFault::AtOnce : fault;
    out.first = instance_at(rewrite_, a, answer.witness);
    // The second tuple has the variables of the second statement in their order.
    Witness other = answer.other;
    const size_t params = other.size() - b.now->vars.size();
    for (size_t v = 0; v < b.now->vars.size(); ++v) other[params + v].first = b.now->vars[v];
    out.second = instance_at(rewrite_, b, other);
    out.given.assign(other.begin(), other.begin() + static_cast<int64_t>(params));
    const auto access = [&](const std::optional<size_t>& n) {
      return n ? std::optional(rewrite_.before.model.accesses[*n]) : std::nullopt;
    };
    out.first->access = access(each.first_access);
    out.second->access = access(each.second_access);
    return out;
  }

  const Rewrite& rewrite_;
  std::vector<std::optional<IntegerRelation>> runs_;  ///< of the copies: new instance -> old one
  Contradictions contradictions_;
  std::unordered_set<const Var*> fixed_;
  Substitution other_locals_;
  Legality out_;
};

}  // namespace

Legality check_order(const Rewrite& rewrite) { return OrderCheck(rewrite).run(); }

}  // namespace helve::legality
