// Which accesses of two iterations may conflict, before isl is asked.
// Hulls of subscripts, equal subscripts (analysis/stepped.h) and operations that commute leave few pairs.
#include <algorithm>
#include <tuple>

#include "helve/analysis/stepped.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/visit.h"
#include "iterations.h"

namespace helve::proofs {

Iterations::Iterations(const AccessModel& m, const IndependentLoop& independent)
    : model(m),
      loop(independent.path),
      first(independent.first),
      last(independent.last),
      step(*loop.back()),
      at(loop.size() - 1),
      from(at) {
  const StmtNode& stmt = *step.stmt;
  is_kernel = stmt.kind == StmtKind::Kernel;
  is_persistent = stmt.kind == StmtKind::For && static_cast<const For&>(stmt).loop == LoopKind::Persistent;
  mesh = model.function->mesh.has_value();
  // Without a mesh the iterations of a Persistent loop are distributed over blocks, so two of them may belong to two
  // blocks.
  for (size_t i = 0; i < at && is_persistent && !mesh; ++i) {
    if (loop[i]->stmt && loop[i]->stmt->kind == StmtKind::Kernel) from = i;
  }
}

namespace {

bool shared(const Iterations& of, const Buffer& buffer) {
  const bool global = buffer.scope == MemoryScope::Param || buffer.scope == MemoryScope::Global;
  if (of.is_kernel) return buffer.scope == MemoryScope::Param || (global && !of.mesh);
  if (of.is_persistent) return global;  // memory that the block allocates outside is private to an iteration
  auto home = of.model.home.find(&buffer);
  if (home == of.model.home.end()) return true;
  return home->second.size() <= of.at || home->second[of.at] != of.loop.back();
}

std::vector<const Access*> accesses(const Iterations& of) {
  std::vector<const Access*> out;
  for (size_t i = of.first; i < of.last; ++i) {
    const Access& t = of.model.accesses[i];
    if (shared(of, *t.buffer)) out.push_back(&t);
  }
  return out;
}

/// The variable of this loop by which `e` differs between iterations, if that alone decides, with a constant factor.
const Var* only_inner(const Iterations& of, const Expr& e, const Path& path) {
  if (changes(e, of.model.constant)) return nullptr;
  const auto is_inner = [&](const Expr& rest) {
    return std::any_of(path.begin() + static_cast<ptrdiff_t>(of.at), path.end(), [&](const StepRef& step) {
      return std::any_of(step->vars.begin(), step->vars.end(),
                         [&](const VarRef& var) { return mentions(rest, var.get()); });
    });
  };
  for (const VarRef& var : of.step.vars) {
    const std::optional<Stepped> stepped = stepped_by(e, var.get());
    if (stepped && forces_equal(stepped->step, Interval::point(0)) && !is_inner(stepped->rest)) return var.get();
  }
  return nullptr;
}

/// Is it proved without isl that equal elements mean equal iterations? A subscript that both accesses share, and that
/// varies with one variable of the loop only, forces that variable to be the same.
bool forced_apart(const Iterations& of, const Access& a, const Access& b) {
  if (a.tiles != b.tiles || a.placed != b.placed || of.from != of.at) return false;
  std::vector<const Var*> forced;
  for (size_t d = 0; d < of.step.vars.size(); ++d) {
    const int64_t* extent = int_value(of.step.extents[d]);
    if (extent && *extent <= 1) forced.push_back(of.step.vars[d].get());
  }
  for (size_t d = 0; d < a.ranges.size(); ++d) {
    const Range &x = a.ranges[d], &y = b.ranges[d];
    if (!x.point || !y.point || !same_expr(x.begin, y.begin)) continue;
    if (const Var* var = only_inner(of, x.begin, a.path)) forced.push_back(var);
  }
  return std::all_of(of.step.vars.begin(), of.step.vars.end(), [&](const VarRef& var) {
    return std::find(forced.begin(), forced.end(), var.get()) != forced.end();
  });
}

}  // namespace

bool in_blocks(const Iterations& of, const Access& a, const Access& b) {
  return of.is_kernel && a.placed && b.placed && a.buffer == b.buffer;
}

std::vector<size_t> replica_axes(const Iterations& of, const MeshTensor& tensor) {
  std::vector<size_t> out;
  const MeshShape& mesh = *of.model.function->mesh;
  for (size_t d = 0; d < mesh.extents.size(); ++d) {
    const bool cut = std::any_of(tensor.sharding.begin(), tensor.sharding.end(),
                                 [&](const auto& each) { return each.first == mesh.names[d]; });
    if (!cut && mesh.extents[d] > 1) out.push_back(d);
  }
  return out;
}

std::vector<Pair> conflicts(const Iterations& of, const SharedNames& names, PathFacts& facts) {
  std::vector<Pair> out;
  const std::vector<const Access*> all = accesses(of);
  const std::vector<Alike> groups = alike(all);
  std::vector<const Access*> firsts;
  for (const Alike& group : groups) firsts.push_back(all[group.first]);
  std::vector<std::pair<size_t, size_t>> pairs = conflicting_pairs(firsts, names, facts);
  for (auto& [i, k] : pairs) std::tie(i, k) = std::pair(groups[i].first, groups[k].first);
  for (const Alike& group : groups) {
    const bool several = group.second != group.first;
    if (several && conflict(*all[group.first], *all[group.second])) pairs.emplace_back(group.first, group.second);
  }
  std::sort(pairs.begin(), pairs.end());
  for (const auto& [i, k] : pairs) {
    const Access &a = *all[i], &b = *all[k];
    if (in_blocks(of, a, b) && replica_axes(of, *a.placed).empty())
      continue;  // of two cores, whose blocks are disjoint
    if (a.buffer != b.buffer || !forced_apart(of, a, b)) out.push_back({&a, &b});
  }
  return out;
}

}  // namespace helve::proofs
