// Innermost parallel loops become whole vectors and a scalar tail.
// Input: Parallel loops over element stores. Output: Vectorized loops of constant extent if every access is contiguous
// or invariant in the loop's variable; other loops, and scheduled ones, are unchanged.
// Before:  for j in T.Parallel(100): Y[j] = X[j] * a
// After:   for l in T.vectorized(64): Y[l] = X[l] * a
//          for l in T.vectorized(32): Y[l + 64] = X[l + 64] * a
//          for l in T.vectorized(4): Y[l + 96] = X[l + 96] * a
// What two neighbouring iterations read is contiguous too (paired_reads.h). Vectors begin with a whole pair:
// Before:  for j in T.Parallel(65): Y[j] = X[(j + 1) // 2]
// After:   Y[0] = X[0]
//          for l in T.vectorized(64): Y[l + 1] = X[l // 2 + 1]
// Each element is computed by the same expression as before: no result changes.
#include <algorithm>

#include "helve/analysis/effects.h"
#include "helve/arith/simplify.h"
#include "helve/dispatch/vector_run.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "paired_reads.h"
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
    if (widest_lanes(loop->extents.back(), lanes, facts) < 2) return s;
    Substitution bound;  // values of names, in terms of the loop's variables
    if (!add_names(*loop, bound)) return s;
    Facts inside = facts;
    for (size_t d = 0; d < loop->vars.size(); ++d) enter_loop(inside, loop->vars[d], loop->begins[d], loop->extents[d]);
    PairedReads pairs(*loop, bound, inside);
    return all_contiguous(*loop, bound, inside, pairs) ? split(*loop, lanes, facts, pairs) : s;
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

  static bool add_names(const For& loop, Substitution& bound) {
    bool good = true;
    walk(loop.body, [&](const Stmt& s) {
      if (const Bind* n = as<Bind>(s)) good &= add_value(bound, n->var, n->value) || !n->var->dtype.is_index();
    });
    return good;
  }

  /// One step of the variable is one element, or none; of what is read, two steps may be one.
  static bool contiguous(const Buffer& b, const std::vector<Expr>& indices, const VarRef& var, bool is_read,
                         const Facts& facts, PairedReads& pairs) {
    if (indices.empty()) return is_read;
    for (size_t d = 0; d + 1 < indices.size(); ++d) {
      if (!invariant(indices[d], var.get())) return false;
    }
    const Expr& last = indices.back();
    if (invariant(last, var.get())) return is_read;
    if (!b.strides.empty()) {
      const int64_t* stride = int_value(b.strides.back());
      if (!stride || *stride != 1) return false;
    }
    Expr next = substitute(last, {{var.get(), Expr(var) + int_imm(1)}});
    const std::optional<int64_t> step = constant_value(simplify(next - last, facts));
    return step ? *step == 1 : is_read && pairs.add(last);
  }

  static bool all_contiguous(const For& loop, const Substitution& bound, const Facts& facts, PairedReads& pairs) {
    const std::vector<ElementUse> uses = element_uses(loop.body);
    return std::all_of(uses.begin(), uses.end(), [&](const ElementUse& use) {
      std::vector<Expr> indices = *use.indices;
      for (Expr& index : indices) index = substitute(index, bound);
      return contiguous(*use.buffer, indices, loop.vars.back(), !use.write, facts, pairs);
    });
  }

  static Stmt split(const For& loop, int64_t lanes, const Facts& facts, const PairedReads& pairs) {
    const Expr& extent = loop.extents.back();
    std::vector<Stmt> parts;
    const Expr head = simplify(min(max(extent, int_imm(0)), pairs.head()), facts);
    if (constant_value(head) != 0) {
      const VarRef h = make_var(loop.vars.back()->name);
      const Expr at = simplify(loop.begins.back() + Expr(h), facts);
      parts.push_back(for_loop(LoopKind::Serial, h, head, substitute(loop.body, {{loop.vars.back().get(), at}})));
    }
    parts.push_back(vector_run(simplify(extent - pairs.head(), facts), lanes, facts,
                               [&](const Expr&, const Expr& position) { return pairs.body_at(position); }));
    Stmt inner = seq(std::move(parts));
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
