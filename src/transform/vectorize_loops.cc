// Innermost parallel loops become whole vectors and a scalar tail.
// Input: Parallel loops over element stores. Output: Vectorized loops of constant extent where every access is contiguous or
// invariant in the loop's variable; other loops are left as they are.
// Before:  for j in T.Parallel(n): Y[j] = X[j] * a
// After:   for v in T.serial(n // 16): for l in T.vectorized(16): Y[v*16 + l] = X[v*16 + l] * a
//          for l in T.serial(n - n // 16 * 16): Y[n // 16 * 16 + l] = ...
// Each element is computed by the same expression as before: no result changes.
#include <algorithm>

#include "helve/arith/simplify.h"
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
    if (!loop || loop->loop != LoopKind::Parallel || !straight_line(loop->body)) return s;
    const int64_t lanes = lanes_of(*loop);
    if (lanes < 2 || !all_contiguous(*loop, facts)) return s;
    return split(*loop, lanes, facts);
  }

 private:
  static bool straight_line(const Stmt& body) {
    bool straight = true;
    walk(body, [&](const Stmt& s) {
      straight &= s->kind == StmtKind::Seq || s->kind == StmtKind::Store || s->kind == StmtKind::Bind;
    });
    return straight;
  }

  /// As many lanes as fit the widest element; a short constant loop may fill a smaller vector exactly.
  int64_t lanes_of(const For& loop) const {
    int64_t widest = 1;
    auto see = [&](DType t) { widest = std::max<int64_t>(widest, t.is_small_float() ? 4 : t.bytes()); };
    walk_exprs(loop.body, [&](const Expr& e) {
      if (!e->dtype.is_index() && !e->dtype.is_bool()) see(e->dtype);
    });
    int64_t lanes = vector_bytes_ / widest;
    if (const int64_t* extent = int_value(loop.extents.back())) {
      while (lanes > *extent) lanes /= 2;
    }
    return lanes;
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
    for (size_t d = 0; d < loop.vars.size(); ++d) facts.bind_loop(loop.vars[d], loop.begins[d], loop.extents[d]);
    const VarRef& var = loop.vars.back();
    bool good = true;
    walk(loop.body, [&](const Stmt& s) {
      if (const Store* n = as<Store>(s)) good &= contiguous(*n->buffer, n->indices, var, false, facts);
    });
    walk_exprs(loop.body, [&](const Expr& e) {
      if (const Load* l = as<Load>(e)) good &= contiguous(buffer_of(l->buffer), l->indices, var, true, facts);
    });
    return good;
  }

  static Stmt split(const For& loop, int64_t lanes, const Facts& facts) {
    const VarRef& var = loop.vars.back();
    const Expr wide = int_imm(lanes);
    const Expr extent = loop.extents.back();
    const Expr begin = loop.begins.back();
    const Expr whole = simplify(floor_div(extent, wide), facts);
    VarRef v = make_var("v");
    VarRef l = make_var("l");
    Stmt vector = for_loop(LoopKind::Vectorized, l, wide,
                           substitute(loop.body, {{var.get(), begin + Expr(v) * wide + Expr(l)}}), loop.span);
    std::vector<Stmt> out = {for_loop(LoopKind::Serial, v, whole, vector, loop.span)};
    const Expr done = simplify(whole * wide, facts);
    const Expr left = simplify(extent - done, facts);
    const int64_t* none = int_value(left);
    if (!none || *none != 0) {
      VarRef t = make_var("l");
      Stmt tail = substitute(loop.body, {{var.get(), begin + done + Expr(t)}});
      out.push_back(for_loop(LoopKind::Serial, t, left, tail, loop.span));
    }
    Stmt inner = seq(std::move(out), loop.span);
    if (loop.vars.size() == 1) return inner;
    Ref<For> outer = make_ref<For>(loop);
    outer->vars.pop_back();
    outer->begins.pop_back();
    outer->extents.pop_back();
    outer->body = inner;
    return Stmt(outer);
  }

  int64_t vector_bytes_;
};

}  // namespace

FunctionRef vectorize_loops(const FunctionRef& f, const PassOptions& options) {
  return with_body(f, Vectorization(*f, options.vector_bytes).rewrite(f->body));
}

}  // namespace helve
