// From the paths of the access model to loops of the block, loops of a thread and conditions.
// Loops outside of T.threads are the block's; what stands inside of it belongs to the thread.
#include "block_accesses.h"

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/matrix_move.h"
#include "helve/layout/warp.h"
#include "helve/support/diagnostic.h"

namespace helve::barriers {

namespace {

bool is_shared_memory(const Buffer& b) { return b.scope == MemoryScope::Shared || is_global(b); }

/// Is it no array of mbarriers, which only operations that say so access, and no memory that a ring hands over, whose
/// accesses the ring's events order (analysis/rings.h)?
bool is_data(const Access& access) {
  if (access.buffer->slots > 0) return false;
  if (access.load || access.stmt->kind != StmtKind::TileOp) return true;
  const TileOp& op = static_cast<const TileOp&>(*access.stmt);
  return !op.barriers() || op.barriers()->buffer != access.buffer;
}

}  // namespace

BlockAccesses::BlockAccesses(const Kernel& kernel, const std::vector<MayAlias>& may_alias, AccessTable& table)
    : model_(access_model(Stmt(&kernel), may_alias, is_shared_memory)), table_(table) {
  table_.begin(model_.constant);
}

Accesses BlockAccesses::take(size_t end, const BlockLoop* loop) {
  Accesses out;
  for (; next_ < model_.accesses.size() && model_.accesses[next_].visit < end; ++next_) {
    const Access& each = model_.accesses[next_];
    if (!is_data(each)) continue;
    out.all.push_back(table_.intern(access(each, loop)));
    if (!each.queue) continue;
    out.copies.push_back(out.all.back());
    out.queue = table_.queue(*each.queue);
  }
  return out;
}

std::vector<VarRange> BlockAccesses::ranges(size_t visit) const {
  const Step& step = *model_.loop_at.at(visit);
  std::vector<VarRange> out;
  for (size_t d = 0; d < step.vars.size(); ++d) out.push_back(range(step, d));
  return out;
}

VarRange BlockAccesses::range(const Step& step, size_t d) const {
  const auto known = [&](const Expr& e) { return changes(e, model_.constant) ? Expr() : e; };
  return {step.vars[d], known(step.begins[d]), known(step.extents[d])};
}

BlockAccess BlockAccesses::access(const Access& of, const BlockLoop* loop) const {
  BlockAccess out;
  out.buffer = of.buffer;
  out.write = of.write;
  out.mode = of.mode;
  out.loop = loop;
  out.in_async_proxy = of.executor == Executor::Async;
  if (of.stmt->kind == StmtKind::TileOp) {
    const TileOp& op = static_cast<const TileOp&>(*of.stmt);
    if (op.is_by_tma()) out.warpgroup = op.warpgroup();
  }
  for (size_t i = 1; i < of.path.size(); ++i) {  // the first is the kernel
    const Step& step = *of.path[i];
    if (step.condition) {
      // What a while loop goes on for is mostly data, and says nothing of elements.
      if (!step.stmt || step.stmt->kind != StmtKind::While) out.conditions.push_back(step.condition);
      continue;
    }
    if (!step.stmt || step.stmt->kind != StmtKind::For) continue;
    if (static_cast<const For&>(*step.stmt).loop == LoopKind::Thread) out.thread = step.vars[0];
    for (size_t d = 0; out.thread && d < step.vars.size(); ++d) out.inner.push_back(range(step, d));
  }
  if (of.executor == Executor::Warps) {
    add_matrices(of, out);
  } else {
    add_box(of, out);
  }
  add_names(out);
  return out;
}

/// A box of elements, as loops over them.
void BlockAccesses::add_box(const Access& of, BlockAccess& out) const {
  for (const Range& range : of.ranges) {
    const int64_t* extent = int_value(range.extent);
    out.indices.push_back(range.begin);
    if (range.point || (extent && *extent == 1)) continue;
    out.inner.push_back({make_var("run"), int_imm(0), range.extent});
    out.indices.back() = range.begin + Expr(out.inner.back().var);
  }
}

/// A warp moves its matrices together: it counts as an additional thread, since no lane's access is ordered with those
/// of the others.
void BlockAccesses::add_matrices(const Access& of, BlockAccess& out) const {
  const MatrixOperands operands = matrix_operands(static_cast<const TileOp&>(*of.stmt));
  std::string reason;
  const std::optional<MatrixMove> move =
      matrix_move(operands.layout, *constant_shape(operands.memory->shape()), &reason);
  HELVE_CHECK(move, reason);
  const int64_t threads = operands.layout.span(axes::tx());
  out.thread = make_var("warp");
  out.first_thread = threads;
  out.of_warpgroup = kWarpgroup / kWarp;
  const Expr first = (Expr(out.thread) - int_imm(threads)) * int_imm(kWarp);
  std::vector<Expr> at(2, int_imm(0));
  const auto count = [&](size_t dim, int64_t extent, int64_t step) {
    out.inner.push_back({make_var("n"), int_imm(0), int_imm(extent)});
    at[dim] = at[dim] + Expr(out.inner.back().var) * int_imm(step);
  };
  for (const MatrixMove::Digit& digit : move->warps) {
    const Expr value = floor_mod(floor_div(first, int_imm(digit.divisor)), int_imm(digit.extent));
    at[digit.dim] = at[digit.dim] + value * int_imm(digit.step);
  }
  for (const MatrixMove::Digit& digit : move->registers) count(digit.dim, digit.extent, digit.step);
  for (size_t dim : {0, 1}) count(dim, kMatrixRows, 1);
  out.inner.push_back({out.thread, int_imm(threads), int_imm(threads / kWarp)});
  size_t next = 0;
  for (const Range& range : of.ranges) out.indices.push_back(range.point ? range.begin : range.begin + at[next++]);
}

/// Names with unknown values that each thread has for itself; those of the block are known to the table.
void BlockAccesses::add_names(BlockAccess& out) const {
  std::unordered_set<const Var*> taken;
  const auto add = [&](const Expr& e) {
    if (!e) return;
    walk(e, [&](const Expr& node) {
      const Var* var = as<Var>(node);
      if (!var || !stays(var) || table_.depth_of(var) || !taken.insert(var).second) return;
      out.inner.push_back({VarRef(var), {}, {}});
    });
  };
  if (model_.names.empty()) return;
  for (const Expr& index : out.indices) add(index);
  for (const Expr& condition : out.conditions) add(condition);
  for (size_t i = 0; i < out.inner.size(); ++i) {
    const VarRange range = out.inner[i];
    add(range.begin);
    add(range.extent);
  }
}

}  // namespace helve::barriers
