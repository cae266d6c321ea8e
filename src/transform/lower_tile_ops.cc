// Tile operations become loops, each by the first schedule of the target that applies.
// Input: kernels with tile operations. Output: no tile operation is left that the target has schedules for; collectives
// stay.
// Before:  T.fill(acc, 0.0)
// After:   for i, j in T.Parallel(...): acc[i, j] = 0.0
// Every operation computes what its row in the table defines; floating-point sums may be re-associated where the row
// allows it. Schedules know the facts of enclosing loops, so that a full tile needs no guard; an operation that faults
// whenever it runs is removed. An operand that reads memory is evaluated once, before the operation writes.
#include <algorithm>
#include <unordered_set>

#include "certain_faults.h"
#include "helve/analysis/thread_form.h"
#include "helve/arith/simplify.h"
#include "helve/dispatch/schedule_table.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"
#include "undivided.h"

namespace helve {

namespace {

class Lowering final : public ScopedRewriter {
 public:
  Lowering(const Function& f, const PassOptions& options) : ScopedRewriter(f), schedules_(*options.schedules) {
    context_.function = &f;
    context_.machine = &options.machine;
    context_.choices = options.choices;
    walk(f.body, [&](const Stmt& s) {
      const Kernel* kernel = as<Kernel>(s);
      if (kernel && is_written_for_threads(*kernel)) for_threads_.insert(kernel);
      const For* loop = as<For>(s);
      const bool independent = loop && (loop->loop == LoopKind::Parallel || loop->loop == LoopKind::Vectorized ||
                                        loop->loop == LoopKind::Thread);
      if (!independent) return;
      walk(loop->body, [&](const Stmt& inner) {
        if (inner->kind == StmtKind::TileOp) in_iterations_.insert(inner.get());
      });
    });
  }

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    const TileOp* op = as<TileOp>(s);
    if (!op || op->row().is_collective() || !has_schedule(op->op)) return s;
    context_.kernel = enclosing_kernel();
    context_.facts = &facts;
    context_.scope = in_iterations_.contains(s.get()) ? OpScope::Iteration : OpScope::Block;
    // Simplify extents such as (b + 1) * n - b * n to constants before schedules see them.
    std::vector<Stmt> out;
    const Stmt simple = map_parts(
        s, [&](const Expr& e) { return evaluated_before(without_faults(simplify(e, facts)), &out); },
        [](const Stmt& part) { return part; });
    const Stmt sound = without_fault(simple, mesh());
    if (!as<TileOp>(sound)) return sound;
    out.push_back(lower_tile_op(*as<TileOp>(sound), schedules_, context_));
    if (context_.machine->is_gpu() && context_.scope == OpScope::Block && for_threads_.contains(context_.kernel)) {
      refuse_undivided(out.back(), op, op->span, registers_of_threads(*context_.kernel));
    }
    // Schedules compute with constants; the results are folded, so that the text parses back unchanged.
    return helve::rewrite(
        seq(std::move(out)), [](const Stmt& inner) { return inner; }, [](const Expr& e) { return simplify(e); });
  }

 private:
  bool has_schedule(TileOpcode op) const {
    return std::any_of(schedules_.begin(), schedules_.end(), [&](const TileSchedule& s) { return s.op == op; });
  }

  /// The value of an operand; one that reads memory, which the operation may overwrite, is bound to a name in `binds`.
  /// Equal values share a name, so that equal regions stay equal.
  static Expr evaluated_before(const Expr& e, std::vector<Stmt>* binds) {
    bool reads = false;
    walk(e, [&](const Expr& node) { reads |= node->kind == ExprKind::Load; });
    if (!reads) return e;
    for (const Stmt& known : *binds) {
      if (same_expr(as<Bind>(known)->value, e)) return Expr(as<Bind>(known)->var);
    }
    VarRef var = make_var("operand", e->dtype, e->span);
    binds->push_back(bind(var, e, e->span));
    return Expr(var);
  }

  const std::vector<TileSchedule>& schedules_;
  LoweringContext context_;
  std::unordered_set<const Kernel*> for_threads_;  ///< kernels in thread form
  std::unordered_set<const StmtNode*> in_iterations_;  ///< operations in the body of an independent loop
};

}  // namespace

FunctionRef lower_tile_ops(const FunctionRef& f, const PassOptions& options) {
  return with_body(f, Lowering(*f, options).rewrite(f->body));
}

}  // namespace helve
