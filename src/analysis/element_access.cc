// Accesses of one buffer in lowered loops, element by element.
// An access belongs to a class when its nest has the class's bounds and its subscripts the class's form; variables of
// one nest then stand for those of the other.
#include "helve/analysis/element_access.h"

#include <algorithm>
#include <numeric>

#include "helve/arith/simplify.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

Stmt ElementWalk::walk(const Stmt& s) {
  if (!s) return s;
  if (const For* n = as<For>(s)) return loop(*n, s);
  if (const Bind* n = as<Bind>(s)) return bind(*n, s);
  if (as<Alloc>(s)) return s;
  if (const Seq* n = as<Seq>(s)) {
    std::vector<Stmt> out;
    bool changed = false;
    for (const Stmt& part : n->stmts) {
      Stmt mapped = walk(part);
      changed |= mapped != part;
      if (mapped) out.push_back(std::move(mapped));
    }
    return changed ? seq(std::move(out), s->span) : s;
  }
  if (const Store* n = as<Store>(s)) {
    Ref<Store> copy = make_ref<Store>(*n);
    copy->value = expression(n->value, true);
    bool changed = copy->value != n->value;
    for (Expr& index : copy->indices) {
      Expr mapped = expression(index, true);
      changed |= mapped != index;
      index = std::move(mapped);
    }
    const Stmt self = changed ? Stmt(copy) : s;
    if (n->buffer.get() != &buffer_) return self;
    unclear_ |= conditions_ > 0 || n->is_atomic();
    return on_store(*n, self);
  }
  if (const If* n = as<If>(s)) {
    const Ref<If> changed = copy_with(*n, [&](If& copy) {
      copy.condition = expression(n->condition, false);
      ++conditions_;
      copy.then_body = walk(n->then_body);
      copy.else_body = walk(n->else_body);
      --conditions_;
      return copy.then_body && (copy.then_body != n->then_body || copy.else_body != n->else_body);
    });
    return changed ? Stmt(changed) : s;
  }
  unclear_ |= touches(s);
  return s;
}

Stmt ElementWalk::loop(const For& loop, const Stmt& self) {
  const int visit = visits_++;
  for (size_t d = 0; d < loop.vars.size(); ++d) {
    expression(loop.begins[d], false);
    expression(loop.extents[d], false);
    const Expr begin = substitute(loop.begins[d], names_), extent = substitute(loop.extents[d], names_);
    loops_.push_back({loop.vars[d], begin, extent, loop.loop, visit, &loop});
  }
  Stmt body = walk(loop.body);
  loops_.resize(loops_.size() - loop.vars.size());
  if (body == loop.body) return leave_loop(self, visit);
  const Seq* rest = as<Seq>(body);
  if (!body || (rest && rest->stmts.empty())) return {};
  return leave_loop(Stmt(copy_with(loop, [&](For& copy) { copy.body = std::move(body); })), visit);
}

Stmt ElementWalk::bind(const Bind& bind, const Stmt& self) {
  const Expr value = expression(bind.value, true);
  const Expr meant = substitute(bind.value, names_);
  if (has_load(meant) || opaque(meant) || !add_value(names_, bind.var, bind.value)) read_names_.insert(bind.var.get());
  if (value == bind.value) return self;
  Ref<Bind> copy = make_ref<Bind>(bind);
  copy->value = value;
  return Stmt(copy);
}

Expr ElementWalk::expression(const Expr& e, bool straight) {
  return rewrite(e, [&](const Expr& node) -> Expr {
    // A selection or a lazy operand does not always read its operands; reading more than it does is no change of what
    // it computes, and an element of the class exists wherever its nest runs.
    const Load* load = as<Load>(node);
    if (!load || &buffer_of(load->buffer) != &buffer_) return node;
    unclear_ |= !straight || conditions_ > 0;
    return on_load(*load, node);
  });
}

bool ElementWalk::touches(const Stmt& s) const {
  bool found = false;
  helve::walk(s, [&](const Stmt& inner) {
    const Store* store = as<Store>(inner);
    found |= store && store->buffer.get() == &buffer_;
    found |= inner->kind == StmtKind::TileOp || inner->kind == StmtKind::ForTiles || inner->kind == StmtKind::Kernel;
  });
  walk_exprs(s, [&](const Expr& e) {
    const Load* load = as<Load>(e);
    found |= load && &buffer_of(load->buffer) == &buffer_;
  });
  return found;
}

ElementAccess ElementWalk::access(const std::vector<Expr>& indices, const Expr& value) const {
  ElementAccess out{value != nullptr, {}, value ? substitute(value, names_) : value, loops_};
  out.opaque = value && opaque(out.value);
  for (const Expr& index : indices) {
    out.indices.push_back(substitute(index, names_));
    out.opaque |= opaque(out.indices.back());
  }
  return out;
}

bool ElementWalk::opaque(const Expr& e) const {
  bool found = false;
  helve::walk(e, [&](const Expr& node) {
    const Var* var = as<Var>(node);
    found |= var && read_names_.contains(var);
  });
  return found;
}

namespace {

class AccessCollector final : public ElementWalk {
 public:
  using ElementWalk::ElementWalk;
  std::vector<ElementAccess> found;

 private:
  Expr on_load(const Load& load, const Expr& self) override {
    found.push_back(access(load.indices, {}));
    return self;
  }
  Stmt on_store(const Store& store, const Stmt& self) override {
    found.push_back(access(store.indices, store.value));
    return self;
  }
};

/// Different iterations of the class touch different elements: each variable counts in one dimension, and there a step
/// of it is longer than what the variables of shorter steps span.
bool one_iteration_each(const ElementClass& c) {
  std::vector<bool> placed(c.loops.size(), false);
  for (const Expr& index : c.indices) {
    const Sum sum = sum_of(index);
    std::vector<std::pair<int64_t, size_t>> steps;  // length, loop
    for (const Term& term : sum.terms) {
      for (size_t v = 0; v < c.loops.size(); ++v) {
        const bool alone = term.factors.size() == 1 && term.factors[0].get() == c.loops[v].var.get();
        const bool inside = std::any_of(term.factors.begin(), term.factors.end(),
                                        [&](const Expr& factor) { return mentions(factor, c.loops[v].var.get()); });
        if (inside && (!alone || placed[v])) return false;
        if (!alone) continue;
        placed[v] = true;
        steps.emplace_back(std::abs(term.coefficient), v);
      }
    }
    std::sort(steps.begin(), steps.end());
    std::optional<int64_t> span = 0;
    for (const auto& [length, v] : steps) {
      if (!span || length <= *span) return false;
      const std::optional<int64_t> extent = interval_of(c.loops[v].extent, c.facts).high;
      if (!extent || *extent > (int64_t{1} << 40) / length)
        span.reset();
      else
        *span += length * std::max<int64_t>(0, *extent - 1);
    }
  }
  return std::accumulate(placed.begin(), placed.end(), true, std::logical_and<>());
}

void enter(Facts* facts, const NestLoop& loop) { facts->bind_loop(loop.var, loop.begin, loop.extent); }

/// Some dimension of one class ends before the other's begins. Facts of further classes, which may be empty, have no
/// say.
bool apart(const ElementClass& a, const ElementClass& b) {
  Facts facts = a.facts;
  for (const NestLoop& loop : b.loops) enter(&facts, loop);
  for (size_t d = 0; d < a.indices.size(); ++d) {
    if (can_prove(apply(Op::Lt, {a.indices[d], b.indices[d]}), facts)) return true;
    if (can_prove(apply(Op::Lt, {b.indices[d], a.indices[d]}), facts)) return true;
  }
  return false;
}

/// Subscripts and the bounds of the nest read no memory.
bool plain(const ElementAccess& access, size_t outer) {
  bool loads = std::any_of(access.indices.begin(), access.indices.end(), has_load);
  for (size_t k = outer; k < access.loops.size(); ++k) {
    loads |= has_load(access.loops[k].begin) || has_load(access.loops[k].extent);
  }
  return !loads;
}

}  // namespace

std::optional<std::vector<ElementAccess>> element_accesses(const Stmt& s, const Buffer& buffer) {
  AccessCollector collector(buffer);
  collector.walk(s);
  if (collector.unclear()) return {};
  return std::move(collector.found);
}

size_t common_loops(const std::vector<ElementAccess>& accesses) {
  size_t common = accesses.empty() ? 0 : accesses[0].loops.size();
  for (const ElementAccess& a : accesses) {
    size_t same = 0;
    while (same < common && same < a.loops.size() && a.loops[same].visit == accesses[0].loops[same].visit) ++same;
    common = same;
  }
  return common;
}

ElementClass class_of(const ElementAccess& access, size_t outer, const Facts& facts) {
  ElementClass out{{}, {}, {}, facts};
  Substitution fresh;
  for (size_t k = outer; k < access.loops.size(); ++k) {
    NestLoop loop = access.loops[k];
    loop.begin = simplify(substitute(loop.begin, fresh), out.facts);
    loop.extent = simplify(substitute(loop.extent, fresh), out.facts);
    loop.var = make_var(access.loops[k].var->name);
    fresh[access.loops[k].var.get()] = Expr(loop.var);
    enter(&out.facts, loop);
    out.loops.push_back(std::move(loop));
  }
  for (const Expr& index : access.indices) out.indices.push_back(simplify(substitute(index, fresh), out.facts));
  return out;
}

bool same_class(const ElementClass& known, const ElementAccess& access, size_t outer, const Facts& given) {
  if (access.loops.size() != known.loops.size() + outer) return false;
  Facts facts = given;  // a bound is compared under what holds outside of its loop
  Substitution names;
  for (size_t k = 0; k < known.loops.size(); ++k) {
    const NestLoop& loop = access.loops[outer + k];
    const NestLoop& own = known.loops[k];
    if (loop.kind != own.kind) return false;
    if (!same_expr(simplify(substitute(loop.begin, names), facts), own.begin)) return false;
    if (!same_expr(simplify(substitute(loop.extent, names), facts), own.extent)) return false;
    names[loop.var.get()] = Expr(own.var);
    enter(&facts, own);
  }
  for (size_t d = 0; d < known.indices.size(); ++d) {
    if (!same_expr(simplify(substitute(access.indices[d], names), facts), known.indices[d])) return false;
  }
  return true;
}

std::optional<std::vector<ElementClass>> element_classes(const std::vector<ElementAccess>& accesses, size_t outer,
                                                         const Facts& facts) {
  constexpr size_t kMostClasses = 8;
  std::vector<ElementClass> classes;
  for (size_t i = 0; i < accesses.size(); ++i) {
    if (!plain(accesses[i], outer)) return {};
    auto home = std::find_if(classes.begin(), classes.end(),
                             [&](const ElementClass& c) { return same_class(c, accesses[i], outer, facts); });
    if (home == classes.end()) {
      if (classes.size() == kMostClasses) return {};
      home = classes.insert(home, class_of(accesses[i], outer, facts));
    }
    home->members.push_back(i);
  }
  for (size_t i = 0; i < classes.size(); ++i) {
    if (!one_iteration_each(classes[i])) return {};
    for (size_t j = 0; j < i; ++j) {
      if (!apart(classes[j], classes[i])) return {};
    }
  }
  return classes;
}

}  // namespace helve
