// Do iterations of loops without order leave staged memory, and partial results and their merges, of each other alone?
// Copies touch elements that the old iterations did not, and memory that they had for themselves may be shared now.
#include <fmt/format.h>

#include "helve/analysis/instance_pair.h"
#include "helve/ir/expr/chain.h"
#include "rewrite.h"

namespace helve::legality {

namespace {

/// Two accesses of the new region by different iterations of a loop without order.
class Meeting {
 public:
  Meeting(const Rewrite& rewrite, size_t i, size_t k) : rewrite_(rewrite), i_(i), k_(k), query_(rewrite.after) {
    for (const StepRef& loop : second().loops) rename(*loop);
  }

  Legality run(const Access& a, const Access& b) {
    Legality out;
    out.verdict = Verdict::Proved;
    for (const StepRef& step : b.path) rename(*step);
    std::vector<Expr> wrong;
    for (const bool own : {false, true}) {
      const OrderCases apart = in_different_iterations(*a.buffer, own);
      if (apart.empty()) continue;
      const OrderCases old = not_promised(a, b, own);
      wrong.push_back(old.empty() ? any_of(apart) : logical_and(any_of(apart), any_of(old)));
    }
    if (wrong.empty()) return out;
    for (const Expr& condition : rewrite_.given) query_.require(condition);
    add(a.path, {});
    add(b.path, renamed_);
    InstancePair two(query_, renamed_);
    query_.require(two.touch(a, b, a.placed || b.placed).condition);
    query_.require(chain(Op::Or, wrong));
    std::vector<VarRef> tuple = first().vars, locals;
    for (const VarRef& var : second().vars) tuple.emplace_back(as<Var>(renamed_.at(var.get())));
    for (const VarRef& var : query_.vars()) {
      if (std::find(tuple.begin(), tuple.end(), var) == tuple.end()) locals.push_back(var);
    }
    const Translation translation = query_.translation();
    const Answer answer =
        IntegerSet(rewrite_.before.engine, tuple, conjunction(query_.conditions()), locals, translation).is_empty();
    out.verdict = answer.verdict;
    out.reason = answer.reason;
    if (answer.verdict != Verdict::Refuted) return out;
    if (!query_.doubts().empty()) {
      out.verdict = Verdict::Unknown;
      out.reason = query_.doubts();
      return out;
    }
    out.fault = RewriteFault::Shared;
    const size_t params = answer.witness.size() - tuple.size();
    out.given.assign(answer.witness.begin(), answer.witness.begin() + static_cast<int64_t>(params));
    out.first = Instance{first().stmt, a, {}};
    out.second = Instance{second().stmt, b, {}};
    for (size_t v = 0; v < first().vars.size(); ++v) {
      out.first->at.emplace_back(first().vars[v], answer.witness[params + v].second);
    }
    for (size_t v = 0; v < second().vars.size(); ++v) {
      out.second->at.emplace_back(second().vars[v], answer.witness[params + first().vars.size() + v].second);
    }
    return out;
  }

 private:
  const RegionStatement& first() const { return rewrite_.statements[i_]; }
  const RegionStatement& second() const { return rewrite_.statements[k_]; }

  void rename(const Step& step) {
    const auto& around = rewrite_.after.around;
    for (const StepRef& outer : around) {
      if (outer.get() == &step) return;
    }
    for (const VarRef& var : step.vars) renamed_.try_emplace(var.get(), Expr(make_var(var->name, var->dtype)));
  }
  void add(const Path& path, const Substitution& renamed) {
    for (size_t i = rewrite_.after.around.size(); i < path.size(); ++i) query_.add(*path[i], renamed);
  }
  /// A case for each loop without order inside the allocation whose iterations have copies of it of their `own`, or
  /// share it.
  OrderCases in_different_iterations(const Buffer& buffer, bool own) const {
    const size_t home = loops_around(rewrite_.after, buffer);
    const auto other = [&](const VarRef& var) { return renamed_.at(var.get()); };
    const auto agree = [&](const VarRef& var) { return apply(Op::Eq, {Expr(var), other(var)}); };
    const auto differ = [&](size_t l, const VarRef& var) {
      const StmtNode& loop = *first().loops[l]->stmt;
      const bool counts = l >= home && is_independent(loop) && is_private(loop, buffer) == own;
      return counts ? apply(Op::Ne, {Expr(var), other(var)}) : Expr();
    };
    return order_cases(first(), second(), agree, differ, false);
  }

  const Copy* copy_of(size_t statement) const {
    for (const Copy& copy : rewrite_.copies) {
      if (copy.now == &rewrite_.statements[statement]) return &copy;
    }
    return nullptr;
  }

  /// Where both are accesses of the old program too, what a loop of it promises holds: cases without such a promise. A
  /// loop around the allocation promises nothing of its memory; one whose iterations have copies of it promises that
  /// none needs another one's (private.cc), as long as they have their `own`.
  OrderCases not_promised(const Access& a, const Access& b, bool own) const {
    const Copy *one = copy_of(i_), *other = copy_of(k_);
    if (!one || !other || a.buffer != b.buffer || rewrite_.made.contains(a.buffer.get())) return {};
    if (rewrite_.partial(a.buffer.get())) return {};
    if (!one->inlined.empty() || !other->inlined.empty()) return {};  // reads that the old statement does not make
    const RegionStatement &s = rewrite_.was(*one), &t = rewrite_.was(*other);
    const auto stands_for = rewrite_.buffers.find(a.buffer.get());
    const BufferRef& memory = stands_for == rewrite_.buffers.end() ? a.buffer : stands_for->second;
    const size_t home = loops_around(rewrite_.before.model, *memory);
    const auto related = [&](Op op, const VarRef& var) {
      return apply(op, {one->values.at(var.get()), substitute(other->values.at(var.get()), renamed_)});
    };
    const auto agree = [&](const VarRef& var) { return related(Op::Eq, var); };
    const auto differ = [&](size_t l, const VarRef& var) {
      const StmtNode& loop = *s.loops[l]->stmt;
      const bool promised = l >= home && is_independent(loop) && (own || !is_private(loop, *memory));
      return promised ? Expr() : related(Op::Ne, var);
    };
    return order_cases(s, t, agree, differ, true);
  }

  const Rewrite& rewrite_;
  const size_t i_, k_;
  PathConditions query_;
  Substitution renamed_;
};

}  // namespace

Legality check_iterations(const Rewrite& rewrite) {
  Legality out;
  out.verdict = Verdict::Proved;
  const std::vector<Access>& all = rewrite.after.accesses;
  const auto has_unordered = [](const RegionStatement& s) {
    return std::any_of(s.loops.begin(), s.loops.end(), [](const StepRef& l) { return is_independent(*l->stmt); });
  };
  for (size_t i = 0; i < rewrite.statements.size(); ++i) {
    const RegionStatement& s = rewrite.statements[i];
    if (!has_unordered(s)) continue;
    for (size_t k = i; k < rewrite.statements.size(); ++k) {
      const RegionStatement& t = rewrite.statements[k];
      for (size_t a = s.first; a < s.last; ++a) {
        for (size_t b = t.first; b < t.last; ++b) {
          const Buffer* buffer = all[a].buffer.get();
          if (all[b].buffer.get() != buffer) continue;
          const bool merged = rewrite.merged_by(*s.stmt) || rewrite.merged_by(*t.stmt);
          const bool placed =
              rewrite.staged.contains(buffer) || rewrite.moved.contains(buffer) || rewrite.buffers.contains(buffer);
          if (!merged && !placed && !rewrite.partial(buffer)) continue;
          if (!conflict(all[a], all[b])) continue;
          if (worsen(out, Meeting(rewrite, i, k).run(all[a], all[b]))) return out;
        }
      }
    }
  }
  return out;
}

}  // namespace helve::legality
