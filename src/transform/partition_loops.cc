// Loops are cut where a condition on their variable changes.
// Input and output: the program of a thread, simplified, after shared memory has layouts. Only small loops are cut;
// each part runs the body in order, as before.
// Before:  for v in T.unroll(4):                           After:  if tx < n: S[tx * 4] = A[tx]
//              if tx < n and v < 1: S[tx * 4] = A[tx]              else: S[tx * 4] = 0.0
//              else: S[tx * 4 + v] = 0.0                           for v in T.unroll(3): S[tx * 4 + v + 1] = 0.0
// C compilers do this as well; it is done here since NVVM before 13.5 gives the accesses of all iterations the
// alignment of the last one that it evaluates. A scheduled serial loop stays whole: its code is not unrolled by those
// compilers either (codegen/c).
#include <algorithm>
#include <set>

#include "helve/arith/sum.h"
#include "helve/ir/tensor/renewed.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"

namespace helve {

namespace {

constexpr int kMaxStatements = 32;  // of a body that is duplicated
constexpr int64_t kMaxIterations = 16;  // of a loop that is cut at any point
constexpr size_t kMaxCuts = 4;  // of a longer loop
constexpr int64_t kFar = int64_t{1} << 40;

bool is_small(const Stmt& body) {
  int statements = 0;
  bool plain = true;
  walk(body, [&](const Stmt& s) {
    ++statements;
    const For* loop = as<For>(s);
    plain &= s->kind == StmtKind::Store || s->kind == StmtKind::If || s->kind == StmtKind::Seq ||
             s->kind == StmtKind::Bind || s->kind == StmtKind::Alloc || (loop && loop->loop != LoopKind::Thread);
  });
  return plain && statements <= kMaxStatements;
}

/// The values of `var` at which the truth of conditions on it may change, each the begin of another part.
class Cuts {
 public:
  Cuts(const VarRef& var, const Facts& facts) : var_(var), facts_(facts) {}

  void collect(const Stmt& body) {
    walk_exprs(body, [&](const Expr& e) {
      const Apply* node = as<Apply>(e);
      if (node && row_of(node->op).rule == OpRule::Compare && node->args[0]->dtype.is_index()) compare(*node);
    });
  }

  const std::set<int64_t>& at() const { return at_; }
  /// Is there a condition that depends on the variable alone, but does not compare it with a number?
  bool anywhere() const { return anywhere_; }

 private:
  void compare(const Apply& node) {
    std::optional<Sum> difference = add(sum_of(node.args[0]), sum_of(node.args[1]), -1);
    if (!difference) return;
    const std::optional<int64_t> step = coefficient_of(*difference, var_.get());
    if (!step) {
      anywhere_ |= depends_on_variable_alone(*difference);
      return;
    }
    if (*step == 0) return;
    std::optional<Sum> rest = add(*difference, sum_of(Expr(var_)), -*step);
    if (!rest) return;
    const Interval range = interval_of(*rest, facts_);
    const bool near = (!range.low || std::abs(*range.low) < kFar) && (!range.high || std::abs(*range.high) < kFar);
    if (!near || std::abs(*step) >= kFar) return;
    // The condition is step * var + rest <= limit, or its negation; an equality is one of two.
    const bool strict = node.op == Op::Lt || node.op == Op::Ge;
    const bool equal = node.op == Op::Eq || node.op == Op::Ne;
    if (strict || equal) cut(*step, range, -1);
    if (!strict || equal) cut(*step, range, 0);
  }

  void cut(int64_t step, const Interval& rest, int64_t limit) {
    for (const std::optional<int64_t>& end : {rest.low, rest.high}) {
      if (!end) continue;
      const int64_t room = limit - *end;  // step * var <= room
      at_.insert(step > 0 ? floor_quotient(room, step) + 1 : -floor_quotient(room, -step));
    }
  }

  bool depends_on_variable_alone(const Sum& sum) const {
    bool alone = true;
    walk(expr_of(sum),
         [&](const Expr& e) { alone &= e->kind != ExprKind::Load && (!as<Var>(e) || as<Var>(e) == var_.get()); });
    return alone;
  }

  VarRef var_;
  const Facts& facts_;
  std::set<int64_t> at_;
  bool anywhere_ = false;
};

class Partition final : public ScopedRewriter {
 public:
  using ScopedRewriter::ScopedRewriter;

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    const For* loop = as<For>(s);
    const bool stays = loop && loop->scheduled && loop->loop == LoopKind::Serial;
    const bool ordered =
        loop && !stays &&
        (loop->loop == LoopKind::Serial || loop->loop == LoopKind::Unroll || loop->loop == LoopKind::Vectorized);
    if (!ordered || !int_value(loop->begins[0]) || !is_small(loop->body)) return s;
    const int64_t begin = *int_value(loop->begins[0]);
    const int64_t* extent = int_value(loop->extents[0]);
    Facts inside = facts;
    inside.bind_loop(loop->vars[0], loop->begins[0], loop->extents[0]);
    Cuts cuts(loop->vars[0], inside);
    cuts.collect(loop->body);
    const bool is_short = extent && *extent <= kMaxIterations;
    std::vector<int64_t> bounds;  // the begins of all parts but the first, from the loop's begin
    for (int64_t cut : cuts.at()) {
      if (cut > begin && (!extent || cut < begin + *extent)) bounds.push_back(cut - begin);
    }
    if (is_short && cuts.anywhere()) {
      bounds.clear();
      for (int64_t i = 1; i < *extent; ++i) bounds.push_back(i);
    }
    if (bounds.empty() || (!is_short && bounds.size() > kMaxCuts)) return s;
    return parts(*loop, bounds, s->span);
  }

 private:
  /// An extent that reads memory is evaluated once: the body may change the memory.
  static Stmt parts(const For& loop, const std::vector<int64_t>& bounds, Span span) {
    std::vector<Stmt> out;
    Expr all = loop.extents[0];
    if (has_load(all)) {
      const VarRef count = make_var("count", all->dtype);
      out.push_back(bind(count, all, span));
      all = Expr(count);
    }
    int64_t from = 0;
    for (size_t i = 0; i <= bounds.size(); ++i) {
      const Expr to = i == bounds.size() ? all : int_value(all) ? int_imm(bounds[i]) : min(all, int_imm(bounds[i]));
      out.push_back(part(loop, from, to - int_imm(from), span));
      if (i < bounds.size()) from = bounds[i];
    }
    return seq(std::move(out), span);
  }

  static Stmt part(const For& loop, int64_t from, const Expr& extent, Span span) {
    const VarRef var = make_var(loop.vars[0]->name, loop.vars[0]->dtype);
    const Stmt body =
        substitute(renewed(loop.body), {{loop.vars[0].get(), Expr(var) + loop.begins[0] + int_imm(from)}});
    return for_loop(loop.loop, std::vector<VarRef>{var}, {int_imm(0)}, {extent}, body, 1, span, loop.scheduled);
  }
};

}  // namespace

FunctionRef partition_loops(const FunctionRef& f, const PassOptions& options) {
  const FunctionRef out = with_body(f, Partition(*f).rewrite(f->body));
  return out == f ? f : simplify_function(out, options);
}

}  // namespace helve
