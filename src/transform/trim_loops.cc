// Scheduled loops end where the guards inside them do.
// Input: element loops, simplified. Output: the same, simplified; iterations in which no guard holds are left out.
// Before:  for ii in T.vectorized(8, scheduled=True):     After:  for ii in T.vectorized(4, scheduled=True):
//              if ii < 4: A[ii] = 0.0                                 A[ii] = 0.0
// Guards that read memory stay: what they read is part of the program.
#include <algorithm>

#include "helve/arith/sum.h"
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
    if (used == all) return s;
    return Stmt(copy_with(*loop, [&](For& out) {
      out.begins[0] = int_imm(*used.low);
      out.extents[0] = int_imm(*used.high - *used.low + 1);
    }));
  }
};

}  // namespace

FunctionRef trim_loops(const FunctionRef& f, const PassOptions& options) {
  const FunctionRef out = with_body(f, Trimming(*f).rewrite(f->body));
  return out == f ? f : simplify_function(out, options);
}

}  // namespace helve
