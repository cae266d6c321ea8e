// Accesses of one buffer in lowered loops, element by element.
// An access belongs to a class when its nest has the class's bounds and its subscripts the class's form; variables of
// one nest then stand for those of the other. That a class has an element in one iteration only is the cheap test of
// analysis/stepped.h for each variable; sets of integers are not asked, since a buffer is contracted only if all of its
// accesses are of few forms.
#include "helve/analysis/element_access.h"

#include <algorithm>
#include <numeric>

#include "helve/analysis/stepped.h"
#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/visit.h"

namespace helve {

namespace {

/// A selection or a lazy operand does not always read its operands; reading more than it does is no change of what it
/// computes, and an element of a class exists wherever its nest runs.
bool is_straight(const Access& access) {
  const StmtKind kind = access.stmt->kind;
  const bool in_loops = std::all_of(access.path.begin(), access.path.end(), [](const StepRef& step) {
    return !step->stmt || step->stmt->kind == StmtKind::For;
  });
  return in_loops && (kind == StmtKind::Store || kind == StmtKind::Bind) && access.mode == StoreMode::Write;
}

ElementAccess element(const Access& access, const AccessModel& model) {
  ElementAccess out{&access, {}, {}, access.value && model.names_stay(access.value)};
  for (const Range& range : access.ranges) {
    out.indices.push_back(range.begin);
    out.opaque |= model.names_stay(range.begin);
  }
  for (const StepRef& step : access.path) {
    if (!step->stmt) continue;
    const For& loop = static_cast<const For&>(*step->stmt);
    for (size_t d = 0; d < step->vars.size(); ++d) {
      out.loops.push_back({step->vars[d], step->begins[d], step->extents[d], loop.loop, step->visit, &loop});
    }
  }
  return out;
}

/// Different iterations of the class touch different elements: each variable counts in one dimension, and there a step
/// of it is longer than what the variables of shorter steps span.
bool one_iteration_each(const ElementClass& c) {
  std::vector<bool> placed(c.loops.size(), false);
  for (const Expr& index : c.indices) {
    Expr rest = index;
    std::vector<std::pair<int64_t, size_t>> steps;  // length, loop
    for (size_t v = 0; v < c.loops.size(); ++v) {
      const Var* var = c.loops[v].var.get();
      if (!mentions(rest, var)) continue;
      std::optional<Stepped> stepped = stepped_by(rest, var);
      if (!stepped || placed[v]) return false;
      placed[v] = true;
      steps.emplace_back(std::abs(stepped->step), v);
      rest = std::move(stepped->rest);
    }
    std::sort(steps.begin(), steps.end());
    std::optional<int64_t> span = 0;
    for (const auto& [length, v] : steps) {
      if (!span || !forces_equal(length, {-*span, *span})) return false;
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

/// Subscripts and the bounds of the nest read no memory that changes.
bool plain(const ElementAccess& access, size_t outer, const AccessModel& model) {
  const auto reads = [&](const Expr& e) { return changes(e, model.constant); };
  bool found = std::any_of(access.indices.begin(), access.indices.end(), reads);
  for (size_t k = outer; k < access.loops.size(); ++k) {
    found |= reads(access.loops[k].begin) || reads(access.loops[k].extent);
  }
  return !found;
}

}  // namespace

std::optional<std::vector<ElementAccess>> element_accesses(const AccessModel& model, const Buffer& buffer) {
  if (!model.operations.empty()) return {};
  std::vector<ElementAccess> out;
  for (const Access& access : model.accesses) {
    if (access.buffer.get() != &buffer) continue;
    if (!is_straight(access)) return {};
    out.push_back(element(access, model));
  }
  return out;
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

std::optional<std::vector<ElementClass>> element_classes(const AccessModel& model,
                                                         const std::vector<ElementAccess>& accesses, size_t outer,
                                                         const Facts& facts) {
  constexpr size_t kMaxClasses = 8;
  std::vector<ElementClass> classes;
  for (size_t i = 0; i < accesses.size(); ++i) {
    if (!plain(accesses[i], outer, model)) return {};
    auto home = std::find_if(classes.begin(), classes.end(),
                             [&](const ElementClass& c) { return same_class(c, accesses[i], outer, facts); });
    if (home == classes.end()) {
      if (classes.size() == kMaxClasses) return {};
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
