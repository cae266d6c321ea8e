// Which statements of a region have instances.
// What may not be taken apart counts as one statement: loops that run nobody knows how often, code of threads that work
// together, and kernels whose cores collectives order.
#include "helve/analysis/region_statements.h"

#include <algorithm>

#include "helve/ir/tensor/report.h"
#include "helve/ir/tensor/visit.h"

namespace helve {

namespace {

/// Threads that do nothing but their own work are iterations without order. Instructions of a warp, barriers, and
/// registers of other threads (`F[tx ^ 16, r]` is read in step with them) relate their times.
bool works_together(const For& loop) {
  if (loop.loop != LoopKind::Thread) return false;
  const Var* thread = loop.vars[0].get();
  bool together = false;
  const auto look = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    together |= buffer.scope == MemoryScope::Fragment && (indices.empty() || indices[0].get() != thread);
  };
  walk(loop.body, [&](const Stmt& s) {
    together |= s->kind == StmtKind::TileOp;
    if (const Store* store = as<Store>(s)) look(*store->buffer, store->indices);
  });
  walk_exprs(loop.body, [&](const Expr& e) {
    if (const Load* load = as<Load>(e)) look(buffer_of(load->buffer), load->indices);
  });
  return together;
}

bool is_whole(const Function& f, const StmtNode& s) {
  switch (s.kind) {
    case StmtKind::While: return true;
    case StmtKind::For: return works_together(static_cast<const For&>(s));
    case StmtKind::Kernel: return f.mesh && has_collective(static_cast<const Kernel&>(s).body);
    default: return false;
  }
}

bool has_effects(const StmtNode& s) {
  return s.kind == StmtKind::Store || s.kind == StmtKind::TileStore || s.kind == StmtKind::TileOp ||
         s.kind == StmtKind::Report || s.kind == StmtKind::Breakpoint;
}

bool orders_all(const TileOp& op) {
  const TileRule rule = op.row().rule;
  return rule == TileRule::Sync || rule == TileRule::Wait || rule == TileRule::CommBarrier ||
         rule == TileRule::StAsync || op.row().is_collective() || op.barriers();
}

}  // namespace

std::vector<RegionStatement> region_statements(const AccessModel& model) {
  std::vector<RegionStatement> out;
  const bool in_step = std::any_of(model.around.begin(), model.around.end(), [](const StepRef& step) {
    const StmtNode* s = step->stmt;
    return s && s->kind == StmtKind::For && works_together(static_cast<const For&>(*s));
  });
  const auto access_of = [&](size_t visit) {
    const auto before = [](const Access& access, size_t v) { return access.visit < v; };
    const auto at = std::lower_bound(model.accesses.begin(), model.accesses.end(), visit, before);
    return static_cast<size_t>(at - model.accesses.begin());
  };
  for (size_t v = 0; v < model.visits.size();) {
    const Visit& visit = model.visits[v];
    const bool whole = is_whole(*model.function, *visit.stmt);
    RegionStatement s;
    s.stmt = visit.stmt;
    s.visit = v;
    s.first = access_of(v);
    s.last = access_of(whole ? visit.end : v + 1);
    v = whole ? visit.end : v + 1;
    if (visit.stmt->kind == StmtKind::Prefetch) continue;
    s.pure = !whole && !has_effects(*visit.stmt);
    const bool changing = std::any_of(
        model.accesses.begin() + static_cast<int64_t>(s.first), model.accesses.begin() + static_cast<int64_t>(s.last),
        [&](const Access& access) { return !model.constant.contains(access.buffer.get()); });
    if (s.pure && !changing) continue;
    if (whole || visit.stmt->kind == StmtKind::TileOp) {
      const Stmt stmt(visit.stmt);
      s.orders_all = has_operation(stmt, orders_all);
      s.starts_copy = has_operation(stmt, [](const TileOp& op) { return op.begins(); });
    }
    s.orders_all |= has_report(Stmt(visit.stmt)) && !s.pure;  // what a program says keeps its place
    s.orders_all |= in_step;  // threads around the region meet between its statements
    s.path = visit.path;
    for (size_t i = model.around.size(); i < s.path.size(); ++i) {
      if (s.path[i]->begins.empty()) continue;
      s.loops.push_back(s.path[i]);
      s.vars.insert(s.vars.end(), s.path[i]->vars.begin(), s.path[i]->vars.end());
    }
    out.push_back(std::move(s));
  }
  return out;
}

size_t common_loops(const RegionStatement& a, const RegionStatement& b) {
  const auto ends = std::mismatch(a.loops.begin(), a.loops.end(), b.loops.begin(), b.loops.end());
  return static_cast<size_t>(ends.first - a.loops.begin());
}

}  // namespace helve
