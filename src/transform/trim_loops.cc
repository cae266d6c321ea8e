// Scheduled loops end where the guards inside them do.
// Input: element loops, simplified. Output: the same, simplified; iterations in which no guard holds are left out.
// Before:  for ii in T.vectorized(8, scheduled=True):     After:  for ii in T.vectorized(4, scheduled=True):
//              if ii < 4: A[ii] = 0.0                                 A[ii] = 0.0
// Where other variables decide, the end is an expression of them, and the guard goes:
// Before:  for k in T.serial(8, scheduled=True):      After:  for k in T.serial(min(8, 13 - ko * 8), scheduled=True):
//              for j in T.vectorized(4):                          for j in T.vectorized(4):
//                  if ko * 8 + k < 13: S                              S
// Guards that read memory stay: what they read is part of the program.
#include <algorithm>
#include <optional>

#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/tensor/renewed.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"

namespace helve {

namespace {

const Interval kNone{0, -1};

/// The values of `var` at which the statement may do anything.
class Activity {
 public:
  Activity(const VarRef& var, Facts facts) : var_(var), facts_(std::move(facts)) {}

  Interval of(const Stmt& s) {
    if (!s || s->kind == StmtKind::Alloc) return kNone;
    if (const Seq* list = as<Seq>(s)) {
      Interval all = kNone;
      for (const Stmt& part : list->stmts) {
        const Interval one = of(part);
        if (!one.is_empty()) all = all.is_empty() ? one : unite(all, one);
      }
      return all;
    }
    if (const For* loop = as<For>(s)) {
      for (size_t d = 0; d < loop->vars.size(); ++d) {
        if (has_load(loop->begins[d]) || has_load(loop->extents[d])) return Interval::everything();
        facts_.bind_loop(loop->vars[d], loop->begins[d], loop->extents[d]);
      }
      return of(loop->body);
    }
    const If* branch = as<If>(s);
    if (!branch || branch->else_body || has_load(branch->condition)) return Interval::everything();
    return intersect(where(branch->condition), of(branch->then_body));
  }

 private:
  Interval where(const Expr& condition) const {
    const Apply* node = as<Apply>(condition);
    if (!node) return Interval::everything();
    if (node->op == Op::And) {
      Interval all = Interval::everything();
      for (const Expr& part : node->args) all = intersect(all, where(part));
      return all;
    }
    const bool ordered = node->op == Op::Lt || node->op == Op::Le || node->op == Op::Gt || node->op == Op::Ge;
    if (!ordered || !node->args[0]->dtype.is_index()) return Interval::everything();
    const bool swapped = node->op == Op::Gt || node->op == Op::Ge;
    const std::optional<Sum> sum = add(sum_of(node->args[swapped ? 1 : 0]), sum_of(node->args[swapped ? 0 : 1]), -1);
    if (!sum) return Interval::everything();
    const std::optional<int64_t> step = coefficient_of(*sum, var_.get());
    const std::optional<Sum> rest = step && *step != 0 ? add(*sum, sum_of(Expr(var_)), -*step) : std::nullopt;
    if (!rest) return Interval::everything();
    const std::optional<int64_t> least = interval_of(expr_of(*rest), facts_).low;
    if (!least || *least == INT64_MIN) return Interval::everything();
    const bool strict = node->op == Op::Lt || node->op == Op::Gt;  // step * var + rest <= limit
    const int64_t room = (strict ? -1 : 0) - *least;
    if (*step > 0) return {std::nullopt, floor_quotient(room, *step)};
    if (*step == INT64_MIN) return Interval::everything();
    return {-floor_quotient(room, -*step), std::nullopt};
  }

  const VarRef& var_;
  Facts facts_;  ///< loops inside bind their variables; each stands in one place
};

/// Parts of a condition that all hold.
std::vector<Expr> parts_of(const Expr& condition) {
  const Apply* node = as<Apply>(condition);
  if (!node || node->op != Op::And) return {condition};
  std::vector<Expr> all;
  for (const Expr& part : node->args) {
    for (Expr& each : parts_of(part)) all.push_back(std::move(each));
  }
  return all;
}

bool contains(const std::vector<Expr>& all, const Expr& e) {
  return std::any_of(all.begin(), all.end(), [&](const Expr& each) { return same_expr(each, e); });
}

/// Conditions without which the statement does nothing; none is given where it does nothing at all.
std::optional<std::vector<Expr>> needs_of(const Stmt& s) {
  if (!s || s->kind == StmtKind::Alloc) return std::nullopt;
  if (const Seq* list = as<Seq>(s)) {
    std::optional<std::vector<Expr>> common;
    for (const Stmt& part : list->stmts) {
      std::optional<std::vector<Expr>> one = needs_of(part);
      if (!one) continue;
      if (common) std::erase_if(*one, [&](const Expr& e) { return !contains(*common, e); });
      common = std::move(one);
    }
    return common;
  }
  if (const For* loop = as<For>(s)) {
    std::optional<std::vector<Expr>> needs = needs_of(loop->body);
    if (!needs) return needs;
    for (size_t d = 0; d < loop->vars.size(); ++d) {
      if (has_load(loop->begins[d]) || has_load(loop->extents[d])) return std::vector<Expr>{};
      std::erase_if(*needs, [&](const Expr& e) { return mentions(e, loop->vars[d].get()); });
    }
    return needs;
  }
  const If* branch = as<If>(s);
  if (!branch || branch->else_body || has_load(branch->condition)) return std::vector<Expr>{};
  std::vector<Expr> needs = parts_of(branch->condition);
  for (Expr& each : needs_of(branch->then_body).value_or(std::vector<Expr>{})) needs.push_back(std::move(each));
  return needs;
}

/// The number below which a variable fulfils a comparison, which is true for no other values; none if there is no such.
Expr end_by(const Expr& condition, const VarRef& var) {
  const Apply* node = as<Apply>(condition);
  const bool less = node && (node->op == Op::Lt || node->op == Op::Le);
  if (!less && !(node && (node->op == Op::Gt || node->op == Op::Ge))) return {};
  if (!node->args[0]->dtype.is_index()) return {};
  const Expr &low = node->args[less ? 0 : 1], &high = node->args[less ? 1 : 0];  // low < high, or low <= high
  const std::optional<Sum> sum = add(sum_of(low), sum_of(high), -1);
  if (!sum) return {};
  const int64_t step = coefficient_of(*sum, var.get()).value_or(0);
  if (step <= 0) return {};
  const std::optional<Sum> rest = add(*sum, sum_of(Expr(var)), -step);
  if (!rest || mentions(expr_of(*rest), var.get())) return {};
  const bool strict = node->op == Op::Lt || node->op == Op::Gt;
  const Expr room = int_imm(strict ? -1 : 0) - expr_of(*rest);  // step * var <= room
  return (step == 1 ? room : floor_div(room, int_imm(step))) + int_imm(1);
}

/// The statement without one of its conditions.
Stmt without(const Stmt& s, const Expr& condition) {
  return rewrite(s, [&](const Stmt& part) -> Stmt {
    const If* branch = as<If>(part);
    if (!branch || branch->else_body || has_load(branch->condition)) return part;
    std::vector<Expr> kept = parts_of(branch->condition);
    const size_t all = kept.size();
    std::erase_if(kept, [&](const Expr& e) { return same_expr(e, condition); });
    if (kept.size() == all) return part;
    return kept.empty() ? branch->then_body : if_then(conjunction(kept), branch->then_body, {}, part->span);
  });
}

class Trimming final : public ScopedRewriter {
 public:
  using ScopedRewriter::ScopedRewriter;

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    const For* loop = as<For>(s);
    if (!loop || !loop->scheduled || loop->vars.size() != 1 || loop->loop == LoopKind::Thread) return s;
    const int64_t *begin = int_value(loop->begins[0]), *extent = int_value(loop->extents[0]);
    if (!begin || !extent || *extent < 1) return s;
    Facts inside = facts;
    enter_loop(inside, loop->vars[0], loop->begins[0], loop->extents[0]);
    const Interval all{*begin, *begin + *extent - 1};
    const Interval used = intersect(all, Activity(loop->vars[0], inside).of(loop->body));
    if (used.is_empty()) return seq({}, s->span);
    const Stmt shorter = used == all ? s : Stmt(copy_with(*loop, [&](For& out) {
      out.begins[0] = int_imm(*used.low);
      out.extents[0] = int_imm(*used.high - *used.low + 1);
    }));
    return loop->loop == LoopKind::Serial ? ended(*as<For>(shorter), shorter, facts, inside) : shorter;
  }

 private:
  /// The loop up to where a guard of all that it does ends it.
  static Stmt ended(const For& loop, const Stmt& self, const Facts& facts, const Facts& inside) {
    const Definitions defined(loop.body);
    for (const Expr& need : needs_of(loop.body).value_or(std::vector<Expr>{})) {
      const bool outer = std::none_of(defined.vars.begin(), defined.vars.end(),
                                      [&](const VarRef& var) { return mentions(need, var.get()); });
      const Expr end = outer && !constant_value(simplify(need, inside)) ? end_by(need, loop.vars[0]) : Expr();
      if (!end) continue;
      const Expr most = min(loop.extents[0], end - loop.begins[0]);
      return Stmt(copy_with(loop, [&](For& out) {
        out.extents[0] = simplify(max(most, int_imm(0)), facts);
        out.body = without(loop.body, need);
      }));
    }
    return self;
  }
};

}  // namespace

FunctionRef trim_loops(const FunctionRef& f, const PassOptions& options) {
  const FunctionRef out = with_body(f, Trimming(*f).rewrite(f->body));
  return out == f ? f : simplify_function(out, options);
}

}  // namespace helve
