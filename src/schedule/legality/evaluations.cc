// The evaluations of a new region that may fail, each compared with those of the old one.
// One is covered if a statement around it evaluates the same, or an instance of the old region, in the loops of which
// it has the values that its origin says: that instance has to run wherever the evaluation does. Else it must not fail.
#include "evaluations.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "helve/analysis/effects.h"
#include "helve/analysis/path_conditions.h"
#include "helve/analysis/region_order.h"
#include "helve/analysis/region_statements.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/visit.h"

namespace helve::legality {

namespace {

/// A read or a division of a statement's own expressions, and the conditions that its evaluation waits for.
struct Evaluation {
  Expr expr;
  std::vector<Expr> guards;
};

bool is_division(const Expr& e) {
  const Apply* n = as<Apply>(e);
  if (!n || (n->op != Op::FloorDiv && n->op != Op::FloorMod) || n->args[1]->dtype.is_float()) return false;
  const int64_t* divisor = int_value(n->args[1]);
  return !divisor || *divisor == 0;
}

class EvaluationsOf {
 public:
  static std::vector<Evaluation> make(const StmtNode& s) {
    EvaluationsOf of;
    for_each_part(Stmt(&s), [&](const Expr& e) { of.visit(e); }, [](const Stmt&) {});
    return std::move(of.found_);
  }

 private:
  void visit(const Expr& e) {
    if (!fails_.of(e, [&] { return holds_any(e); })) return;
    if (as_op(e, Op::And) || as_op(e, Op::Or)) return visit_chain(e, as<Apply>(e)->op);
    if (const Apply* selection = as_op(e, Op::Select)) return visit_selection(*selection);
    for_each_child(e, [&](const Expr& child) { visit(child); });
    if (e->kind == ExprKind::Load || is_division(e)) found_.push_back({e, guards_});
  }
  void visit_chain(const Expr& e, Op op) {
    const size_t outside = guards_.size();
    for (const Expr& operand : operands_of_chain(e, op)) {
      visit(operand);
      guards_.push_back(op == Op::And ? operand : apply(Op::Not, {operand}));
    }
    guards_.resize(outside);
  }
  void visit_selection(const Apply& node) {
    visit(node.args[0]);
    for (const size_t branch : {1, 2}) {
      guards_.push_back(branch == 1 ? node.args[0] : apply(Op::Not, {node.args[0]}));
      visit(node.args[branch]);
      guards_.pop_back();
    }
  }
  static bool holds_any(const Expr& e) {
    bool found = false;
    walk(e, [&](const Expr& node) { found |= node->kind == ExprKind::Load || is_division(node); });
    return found;
  }

  Memo<bool> fails_;
  std::vector<Expr> guards_;
  std::vector<Evaluation> found_;
};

class EvaluationCheck {
 public:
  EvaluationCheck(const AccessModel& before, const AccessModel& after, const std::vector<Origin>& origins,
                  const ExactEngine& engine)
      : engine_(engine), before_(before), after_(after) {
    for (const Origin& origin : origins) origins_.emplace(origin.after_visit, &origin);
    for (const Buffer* buffer : constant_memory(after.function->body, after.function->may_alias)) {
      always_constant_.insert(buffer);
    }
    for (size_t v = 0; v < before_.visits.size(); ++v) {
      for (Evaluation& each : EvaluationsOf::make(*before_.visits[v].stmt)) old_.push_back({v, std::move(each)});
    }
  }

  Legality run() const {
    std::vector<bool> judged(after_.visits.size());  // statements whose instances are
    for (const RegionStatement& s : region_statements(after_)) {
      const bool whole = !s.pure && (s.stmt->kind == StmtKind::While || s.stmt->kind == StmtKind::For ||
                                     s.stmt->kind == StmtKind::Kernel);
      std::fill_n(judged.begin() + static_cast<int64_t>(s.visit), whole ? after_.visits[s.visit].end - s.visit : 1,
                  true);
    }
    for (size_t v = 0; v < after_.visits.size(); ++v) {
      if (judged[v]) continue;
      for (const Evaluation& each : EvaluationsOf::make(*after_.visits[v].stmt)) {
        if (is_evaluated_around(v, each) || was_evaluated(v, each) || never_fails(v, each)) continue;
        return unknown(each.expr);
      }
    }
    Legality out;
    out.verdict = Verdict::Proved;
    return out;
  }

 private:
  struct Old {
    size_t visit;
    Evaluation evaluation;
  };

  static bool is_it(const Expr& e, const Expr& other) { return e->kind == other->kind && same_expr(e, other); }

  /// The loops, branches and the launch around a statement have evaluated all of theirs that waits for nothing. Memory
  /// may change between those around the region and the region.
  bool is_evaluated_around(size_t visit, const Evaluation& wanted) const {
    const Path& path = after_.visits[visit].path;
    const size_t from = changes(wanted.expr, always_constant_) ? after_.around.size() : 0;
    return std::any_of(path.begin() + static_cast<int64_t>(from), path.end(), [&](const StepRef& step) {
      if (!step->stmt || step->stmt->kind == StmtKind::While) return false;
      const std::vector<Evaluation> all = EvaluationsOf::make(*step->stmt);
      return std::any_of(all.begin(), all.end(),
                         [&](const Evaluation& each) { return each.guards.empty() && is_it(each.expr, wanted.expr); });
    });
  }

  /// Values of old variables where the new statement runs: as its origin says, or of a loop around it, or those of the
  /// last iteration of a loop that is gone.
  Substitution values_at(size_t visit, const Path& old) const {
    Substitution out;
    if (const auto origin = origins_.find(visit); origin != origins_.end()) {
      for (const auto& [var, value] : origin->second->values) out[var.get()] = value;
    }
    std::unordered_set<const Var*> around;
    for (const StepRef& step : after_.visits[visit].path) {
      for (const VarRef& var : step->vars) around.insert(var.get());
    }
    for (size_t i = before_.around.size(); i < old.size(); ++i) {
      const Step& step = *old[i];
      for (size_t d = 0; d < step.begins.size(); ++d) {
        const VarRef& var = step.vars[d];
        if (out.contains(var.get())) continue;
        const Expr last = step.begins[d] + max(step.extents[d], int_imm(1)) - int_imm(1);
        out[var.get()] = around.contains(var.get()) ? Expr(var) : simplify(substitute(last, out));
      }
    }
    return out;
  }

  bool was_evaluated(size_t visit, const Evaluation& wanted) const {
    return std::any_of(old_.begin(), old_.end(), [&](const Old& old) {
      const Path& path = before_.visits[old.visit].path;
      const Substitution values = values_at(visit, path);
      if (!is_it(substitute(old.evaluation.expr, values), wanted.expr)) return false;
      for (const Expr& guard : old.evaluation.guards) {
        if (!holds(visit, wanted, substitute(guard, values))) return false;
      }
      for (size_t i = before_.around.size(); i < path.size(); ++i) {
        if (!runs_inside(visit, wanted, *path[i], values)) return false;
      }
      return true;
    });
  }

  /// Does the body of the old loop or branch run for these values wherever the new evaluation does?
  bool runs_inside(size_t visit, const Evaluation& wanted, const Step& step, const Substitution& values) const {
    if (step.stmt && step.stmt->kind == StmtKind::While) return false;
    if (!says_something(step)) return true;  // a name
    PathConditions of(before_);
    of.add(step);
    if (!step.value && is_same_place(visit, step, values)) return true;
    return std::all_of(of.conditions().begin(), of.conditions().end(),
                       [&](const Expr& condition) { return holds(visit, wanted, substitute(condition, values)); });
  }

  /// Is a loop or branch around the new statement the old one, at the same values? Its instances are judged.
  bool is_same_place(size_t visit, const Step& old, const Substitution& values) const {
    const Path& path = after_.visits[visit].path;
    return std::any_of(path.begin() + static_cast<int64_t>(after_.around.size()), path.end(), [&](const StepRef& step) {
      const auto origin = origins_.find(step->visit);
      if (!step->stmt || !old.stmt || origin == origins_.end() || origin->second->before_visit != old.visit)
        return false;
      const Substitution there = values_at(step->visit, before_.visits[old.visit].path);
      const bool same_values = std::all_of(there.begin(), there.end(), [&](const auto& each) {
        const auto here = values.find(each.first);
        return here != values.end() && same_expr(here->second, each.second);
      });
      if (!same_values) return false;
      if (old.condition) return step->condition && same_expr(substitute(old.condition, values), step->condition);
      return old.vars == step->vars &&
             std::equal(old.extents.begin(), old.extents.end(), step->extents.begin(), step->extents.end(),
                        [](const Expr& a, const Expr& b) { return same_expr(a, b); });
    });
  }

  bool never_fails(size_t visit, const Evaluation& wanted) const {
    if (is_division(wanted.expr)) {
      const Expr& divisor = as<Apply>(wanted.expr)->args[1];
      return holds(visit, wanted, apply(Op::Ne, {divisor, int_imm(0, divisor->dtype)}));
    }
    const Load* load = as<Load>(wanted.expr);
    const Buffer& buffer = buffer_of(load->buffer);
    if (!is_global(buffer)) return false;  // nobody wrote it
    for (size_t d = 0; d < load->indices.size(); ++d) {
      const Expr inside =
          logical_and(apply(Op::Le, {int_imm(0), load->indices[d]}), less(load->indices[d], buffer.shape[d]));
      if (!holds(visit, wanted, inside)) return false;
    }
    return true;
  }

  /// Is the condition true wherever the new statement evaluates?
  bool holds(size_t visit, const Evaluation& at, const Expr& condition) const {
    PathConditions query = conditions_around(after_);
    for (const VarRef& dim : after_.function->dims) query.require(apply(Op::Le, {int_imm(0), Expr(dim)}));
    const Path& path = after_.visits[visit].path;
    for (size_t i = after_.around.size(); i < path.size(); ++i) {
      if (says_something(*path[i])) query.add(*path[i]);
    }
    for (const Expr& guard : at.guards) query.require(guard);
    const std::vector<Expr>& known = query.conditions();
    if (std::any_of(known.begin(), known.end(), [&](const Expr& each) { return same_expr(each, condition); })) {
      return !changes(condition, after_.constant);
    }
    if (can_prove(condition, query.facts())) return true;
    query.require(apply(Op::Not, {condition}));
    const IntegerSet wrong(engine_, {}, conjunction(query.conditions()), {}, query.translation());
    return wrong.emptiness().verdict == Verdict::Proved;
  }

  static Legality unknown(const Expr& e) {
    Legality out;
    const Load* load = as<Load>(e);
    out.reason = load ? fmt::format("'{}' would be read where it is not now, and may be outside of '{}'", brief_text(e),
                                    buffer_of(load->buffer).name)
                      : fmt::format("'{}' would be computed where it is not now, and may divide by 0", brief_text(e));
    out.remedy = "put it under a condition with which it cannot fail, or name the value in front, guarded";
    return out;
  }

  const ExactEngine& engine_;
  const AccessModel &before_, &after_;
  std::unordered_map<size_t, const Origin*> origins_;  ///< by visit of the new region
  std::vector<Old> old_;
  std::unordered_set<const Storage*> always_constant_;
};

}  // namespace

bool may_fail(const Stmt& region) {
  bool found = false;
  walk(region, [&](const Stmt& s) { found = found || !EvaluationsOf::make(*s).empty(); });
  return found;
}

Legality check_evaluations(const AccessModel& before, const AccessModel& after, const std::vector<Origin>& origins,
                           const ExactEngine& engine) {
  return EvaluationCheck(before, after, origins, engine).run();
}

}  // namespace helve::legality
