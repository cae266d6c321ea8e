// Neighbouring loops over the same range become one.
// Input and output: lowered loops. A value that one loop leaves for the next is then still in a register when it is
// used.
// Before:  for v in T.serial(n): x[v] = A[v]          After:  part[0] = 0.0
//          part[0] = 0.0                                      for v in T.serial(n):
//          for v in T.serial(n): part[0] = part[0] + x[v]         x[v] = A[v]
//                                                                 part[0] = part[0] + x[v]
// Iterations of the fused loop touch disjoint elements of every buffer that one of the two loops writes and both use,
// so each element sees the same accesses in the same order as before. That is asked of analysis/stepped.h for every two
// loops of a sequence, and on purpose of nothing finer: what only the relations of analysis/dependence.h allow are
// loops over parts of one buffer, as the halves of a row, and fused they are no longer vectorized.
// (Other subscripts are other memory: analysis/parameter_strides.h.) Scheduled loops stay apart.
#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "helve/analysis/effects.h"
#include "helve/analysis/stepped.h"
#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/equal.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"
#include "scope_facts.h"

namespace helve {

namespace {

constexpr int kMaxStores = 16;  // beyond it a body no longer lives in registers
constexpr size_t kReach = 64;  // statements that a loop is moved past, so that a sequence is not compared with itself

/// What a piece of code reads and writes, by buffer.
struct Uses {
  std::unordered_map<const Buffer*, std::vector<ElementUse>> of;
  std::unordered_set<const Buffer*> written;
  int stores = 0;
  bool opaque = false;  ///< holds something that accesses more than elements

  explicit Uses(const Stmt& s) {
    for (const ElementUse& use : element_uses(s)) {
      of[use.buffer].push_back(use);
      if (use.write) written.insert(use.buffer);
      stores += use.write;
    }
    walk(s, [&](const Stmt& inner) {
      opaque |= inner->kind == StmtKind::TileOp || inner->kind == StmtKind::Report ||
                inner->kind == StmtKind::Breakpoint || inner->kind == StmtKind::ForTiles ||
                inner->kind == StmtKind::Kernel;
    });
  }

  /// Calls `f` with each buffer here and each there that may share an element which one of the two writes; true once
  /// `f` is.
  template <class F>
  bool any_conflict(const Uses& other, const std::vector<MayAlias>& may_alias, F&& f) const {
    for (const auto& [mine, uses] : of) {
      for (const auto& [its, others] : other.of) {
        if (!written.contains(mine) && !other.written.contains(its)) continue;
        if (may_overlap(may_alias, mine, its) && f(mine, its)) return true;
      }
    }
    return false;
  }

  bool conflicts(const Uses& other, const std::vector<MayAlias>& may_alias) const {
    return opaque || other.opaque || any_conflict(other, may_alias, [](const Buffer*, const Buffer*) { return true; });
  }
};

/// What is known inside the body of a loop, and the variables that do not last for one iteration of it.
struct Inside {
  Facts facts;
  std::unordered_set<const Var*> varying;

  void learn(const Stmt& s) {
    walk(s, [&](const Stmt& inner) {
      if (const VarRef var = named_by(inner)) varying.insert(var.get());
      const For* loop = as<For>(inner);
      if (!loop) return;
      for (size_t d = 0; d < loop->vars.size(); ++d) {
        enter_loop(facts, loop->vars[d], loop->begins[d], loop->extents[d]);
        varying.insert(loop->vars[d].get());
      }
    });
  }
  /// Has `e` one value in all iterations, as far as its variables and its loads go?
  bool lasts(const Expr& e) const {
    return !has_load(e) &&
           std::none_of(varying.begin(), varying.end(), [&](const Var* var) { return mentions(e, var); });
  }
};

class Fusion final : public ScopedRewriter {
 public:
  explicit Fusion(const Function& f) : ScopedRewriter(f), may_alias_(f.may_alias) {}

 protected:
  Stmt leave(const Stmt& s, const Facts& facts) override {
    const Seq* n = as<Seq>(s);
    if (!n) return s;
    std::vector<Part> stmts;
    for (const Stmt& part : n->stmts) stmts.push_back({part, Uses(part)});
    bool changed = false;
    for (size_t k = 1; k < stmts.size(); ++k) {
      for (size_t m = k; m-- > 0 && k - m <= kReach;) {
        Stmt fused = fuse(stmts, m, k, facts);
        if (!fused) continue;
        stmts[k] = {fused, Uses(fused)};
        stmts.erase(stmts.begin() + static_cast<std::ptrdiff_t>(m));
        changed = true;
        --k;
        m = k;
      }
    }
    if (!changed) return s;
    std::vector<Stmt> out;
    for (Part& part : stmts) out.push_back(std::move(part.stmt));
    return seq(std::move(out), s->span);
  }

 private:
  /// A statement of a sequence, and what it uses.
  struct Part {
    Stmt stmt;
    Uses uses;
  };

  /// The loop at `m` moved down to the loop at `k` and fused with it; null when that is not known to be right.
  Stmt fuse(const std::vector<Part>& stmts, size_t m, size_t k, const Facts& facts) {
    const For* first = as<For>(stmts[m].stmt);
    const For* second = as<For>(stmts[k].stmt);
    if (!first || !second || !same_range(*first, *second)) return {};
    if (stmts[m].uses.stores + stmts[k].uses.stores > kMaxStores) return {};
    for (size_t t = m + 1; t < k; ++t) {
      if (stmts[m].uses.conflicts(stmts[t].uses, may_alias_)) return {};
    }
    const Stmt moved = substitute(second->body, {{second->vars[0].get(), Expr(first->vars[0])}});
    if (!iterations_disjoint(*first, stmts[m].uses, moved, facts)) return {};
    Names passed, before;  // definitions that the first loop moves past, and its own
    for (size_t t = m + 1; t < k; ++t) add_definitions(stmts[t].stmt, &passed);
    const Stmt body = with_own_names(first->body, passed);
    add_definitions(body, &before);
    const Stmt own = with_own_names(moved, before);
    Facts inside = facts;
    enter_loop(inside, first->vars[0], first->begins[0], first->extents[0]);
    return Stmt(copy_with(*first, [&](For& fused) {
      fused.body = leave(seq({body, own}), inside);  // both bodies are fused in themselves
      fused.span = second->span;
    }));
  }

  static std::vector<Stmt> statements(const Stmt& s) {
    if (const Seq* n = as<Seq>(s)) return n->stmts;
    return {s};
  }

  using Names = std::unordered_set<const Object*>;

  /// Adds what `s` defines in the sequence that it stands in.
  static void add_definitions(const Stmt& s, Names* names) {
    for (const Stmt& part : statements(s)) {
      if (const VarRef var = named_by(part)) names->insert(var.get());
      if (const Alloc* n = as<Alloc>(part)) names->insert(n->buffer.get());
    }
  }

  /// `s` with new variables and buffers for those of `taken` that it defines: copies of one loop share theirs, and no
  /// scope may define again what one around it does.
  static Stmt with_own_names(const Stmt& s, const Names& taken) {
    Substitution values;
    BufferMap buffers;
    std::unordered_map<const Var*, VarRef> variables;
    walk(s, [&](const Stmt& part) {
      const VarRef bound = named_by(part);
      const Alloc* made = as<Alloc>(part);
      if (bound && taken.contains(bound.get()) && !variables.contains(bound.get())) {
        const VarRef own = make_var(bound->name, bound->dtype, bound->span);
        variables.emplace(bound.get(), own);
        values.emplace(bound.get(), Expr(own));
      }
      if (made && taken.contains(made->buffer.get())) {
        buffers.emplace(made->buffer.get(), BufferRef(make_ref<Buffer>(*made->buffer)));
      }
    });
    if (values.empty() && buffers.empty()) return s;
    return helve::rewrite(replace_buffers(substitute(s, values), buffers), [&](const Stmt& part) -> Stmt {
      const Bind* bound = as<Bind>(part);
      const Alloc* made = as<Alloc>(part);
      if (bound && variables.contains(bound->var.get())) {
        return bind(variables.at(bound->var.get()), bound->value, part->span);
      }
      const Store* fetch = as<Store>(part);
      if (fetch && fetch->previous && variables.contains(fetch->previous.get())) {
        return copy_with(*fetch, [&](Store& out) { out.previous = variables.at(fetch->previous.get()); });
      }
      if (made && buffers.contains(made->buffer.get())) return alloc(buffers.at(made->buffer.get()), part->span);
      return part;
    });
  }

  /// Bounds that are read from memory may change between the two loops.
  static bool same_range(const For& a, const For& b) {
    if (a.scheduled || b.scheduled) return false;
    if (a.loop != b.loop || a.vars.size() != 1 || b.vars.size() != 1) return false;
    if (a.loop != LoopKind::Serial && a.loop != LoopKind::Parallel && a.loop != LoopKind::Vectorized) return false;
    if (has_load(a.begins[0]) || has_load(a.extents[0])) return false;
    return structural_equal(a.begins[0], b.begins[0]) && structural_equal(a.extents[0], b.extents[0]);
  }

  /// Different iterations touch different elements of every buffer that both bodies use and one writes. Of two
  /// parameters that may share memory it is not known which elements are the same. `a`: what the loop uses, whose
  /// bounds read nothing.
  bool iterations_disjoint(const For& loop, const Uses& a, const Stmt& other, const Facts& outer) const {
    Inside inside{outer, {}};
    enter_loop(inside.facts, loop.vars[0], loop.begins[0], loop.extents[0]);
    inside.learn(loop.body);
    inside.learn(other);
    const Uses b(other);
    if (a.opaque || b.opaque) return false;
    return !a.any_conflict(b, may_alias_, [&](const Buffer* buffer, const Buffer* its) {
      if (buffer != its) return true;
      std::vector<ElementUse> all = a.of.at(buffer);
      all.insert(all.end(), b.of.at(buffer).begin(), b.of.at(buffer).end());
      bool separated = false;
      for (size_t d = 0; d < buffer->rank() && !separated; ++d) separated = separates(all, d, loop.vars[0], inside);
      return !separated;
    });
  }

  /// Index d of every access is a step of the variable and a rest: one that lasts, or rests in one window narrower than
  /// the step.
  static bool separates(const std::vector<ElementUse>& uses, size_t d, const VarRef& var, const Inside& inside) {
    std::optional<Stepped> first;
    Interval window;
    bool one_rest = true;
    for (const ElementUse& use : uses) {
      const std::optional<Stepped> here = stepped_by(simplify((*use.indices)[d]), var.get());
      if (!here || (first && first->step != here->step)) return false;
      one_rest = one_rest && (first ? same_expr(here->rest, first->rest) : inside.lasts(here->rest));
      const Interval range = interval_of(here->rest, inside.facts);
      window = first ? unite(window, range) : range;
      if (!first) first = here;
      if (!forces_equal(first->step, one_rest ? Interval::point(0) : window + -window)) return false;
    }
    return first.has_value();
  }

  const std::vector<MayAlias>& may_alias_;
};

}  // namespace

FunctionRef fuse_loops(const FunctionRef& f, const PassOptions&) { return with_body(f, Fusion(*f).rewrite(f->body)); }

}  // namespace helve
