// Innermost parallel loops become whole vectors and a scalar tail.
// Input: Parallel loops over element stores. Output: Vectorized loops of constant extent if every access is contiguous
// or invariant in the loop's variable; other loops, and scheduled ones, are unchanged.
// Before:  for j in T.Parallel(100): Y[j] = X[j] * a
// After:   for l in T.vectorized(64): Y[l] = X[l] * a
//          for l in T.vectorized(32): Y[l + 64] = X[l + 64] * a
//          for l in T.vectorized(4): Y[l + 96] = X[l + 96] * a
// Each element is computed by the same expression as before: no result changes.
#include <algorithm>

#include "helve/analysis/effects.h"
#include "helve/arith/simplify.h"
#include "helve/dispatch/vector_run.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"

namespace helve {

namespace {

class Vectorization final : public ScopedRewriter {
 public:
  Vectorization(const Function& f, int64_t vector_bytes) : ScopedRewriter(f), vector_bytes_(vector_bytes) {}

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    const For* loop = as<For>(s);
    if (!loop || loop->loop != LoopKind::Parallel || loop->scheduled || !straight_line(loop->body)) return s;
    const int64_t lanes = lanes_of(*loop);
    if (widest_lanes(loop->extents.back(), lanes, facts) < 2 || !all_contiguous(*loop, facts)) return s;
    return split(*loop, lanes, facts);
  }

 private:
  static bool straight_line(const Stmt& body) {
    bool straight = true;
    walk(body, [&](const Stmt& s) {
      const Store* store = as<Store>(s);
      straight &= s->kind == StmtKind::Seq || s->kind == StmtKind::Prefetch ||
                  (store && store->mode == StoreMode::Write) || s->kind == StmtKind::Bind;
    });
    return straight;
  }

  /// The number of the widest elements that fit a register.
  int64_t lanes_of(const For& loop) const {
    int64_t widest = 1;
    auto see = [&](DType t) { widest = std::max<int64_t>(widest, t.is_small_float() ? 4 : t.bytes()); };
    walk_exprs(loop.body, [&](const Expr& e) {
      if (!e->dtype.is_index() && !e->dtype.is_bool()) see(e->dtype);
    });
    return std::max<int64_t>(1, vector_bytes_ / widest);
  }

  static bool invariant(const Expr& e, const Var* var) { return !mentions(e, var); }

  /// One step of the variable is one element, or none.
  static bool contiguous(const Buffer& b, const std::vector<Expr>& indices, const VarRef& var, bool may_be_invariant,
                         const Facts& facts) {
    if (indices.empty()) return may_be_invariant;
    for (size_t d = 0; d + 1 < indices.size(); ++d) {
      if (!invariant(indices[d], var.get())) return false;
    }
    const Expr& last = indices.back();
    if (invariant(last, var.get())) return may_be_invariant;
    if (!b.strides.empty()) {
      const int64_t* stride = int_value(b.strides.back());
      if (!stride || *stride != 1) return false;
    }
    Expr next = substitute(last, {{var.get(), Expr(var) + int_imm(1)}});
    const std::optional<int64_t> step = constant_value(simplify(next - last, facts));
    return step && *step == 1;
  }

  static bool all_contiguous(const For& loop, const Facts& outer) {
    Facts facts = outer;
    for (size_t d = 0; d < loop.vars.size(); ++d) enter_loop(facts, loop.vars[d], loop.begins[d], loop.extents[d]);
    const VarRef& var = loop.vars.back();
    bool good = true;
    Substitution bound;  // values of names, in terms of the loop's variables
    walk(loop.body, [&](const Stmt& s) {
      if (const Bind* n = as<Bind>(s)) good &= add_value(bound, n->var, n->value) || !n->var->dtype.is_index();
    });
    if (!good) return false;
    const std::vector<ElementUse> uses = element_uses(loop.body);
    return std::all_of(uses.begin(), uses.end(), [&](const ElementUse& use) {
      std::vector<Expr> indices = *use.indices;
      for (Expr& index : indices) index = substitute(index, bound);
      return contiguous(*use.buffer, indices, var, !use.write, facts);
    });
  }

  static Stmt split(const For& loop, int64_t lanes, const Facts& facts) {
    const VarRef& var = loop.vars.back();
    Stmt inner = vector_run(loop.extents.back(), lanes, facts, [&](const Expr&, const Expr& position) {
      return substitute(loop.body, {{var.get(), simplify(loop.begins.back() + position, facts)}});
    });
    if (loop.vars.size() == 1) return inner;
    return Stmt(copy_with(loop, [&](For& outer) {
      outer.vars.pop_back();
      outer.begins.pop_back();
      outer.extents.pop_back();
      outer.body = inner;
    }));
  }

  int64_t vector_bytes_;
};

}  // namespace

FunctionRef vectorize_loops(const FunctionRef& f, const PassOptions& options) {
  return with_body(f, Vectorization(*f, options.machine.vector_bytes).rewrite(f->body));
}

}  // namespace helve
