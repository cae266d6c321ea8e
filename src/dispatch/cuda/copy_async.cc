// Copies from global to shared memory by cp.async.
// A thread issues copies of 16, 8 or 4 bytes; runs are divided among threads like all other loops of the kernel.
#include "copy_regions.h"
#include "element_nest.h"
#include "helve/analysis/async_run.h"
#include "helve/analysis/thread_form.h"
#include "helve/ir/expr/number.h"
#include "over_elements.h"
#include "schedules.h"

namespace helve::cuda {

namespace {

constexpr int64_t kWidths[] = {16, 8, 4};  // bytes

/// The `length` elements of the region that begin at `at`.
Region run_at(const Region& region, const std::vector<Expr>& at, int64_t length) {
  Region run{region.buffer, {}};
  for (const Expr& index : region_indices(region, at)) run.ranges.push_back({index, int_imm(1), true});
  if (length > 1) run.ranges.back() = {run.ranges.back().begin, int_imm(length), false};
  return run;
}

/// The copy as a loop over runs of `length` elements, if each of them can be one instruction.
Stmt over_runs(const TileOp& op, const CopyRegions& copy, int64_t length, const Facts& facts, std::string* declined) {
  std::vector<Expr> extents = copy.dst.shape();
  if (length > 1) {
    const int64_t* last = extents.empty() ? nullptr : int_value(extents.back());
    if (!last || *last % length != 0 || copy.src.ranges.back().point || copy.dst.ranges.back().point) {
      *declined = "its last dimension is not cut into whole runs";
      return {};
    }
    extents.back() = int_imm(*last / length);
  }
  bool fits = false;
  const Stmt loop = over_elements(extents, facts, [&](std::vector<Expr> at, const Facts& known) {
    if (length > 1) at.back() = at.back() * int_imm(length);
    const Stmt run =
        tile_op(TileOpcode::CpAsync, {run_at(copy.src, at, length), run_at(copy.dst, at, length)}, op.span);
    fits = is_async_run(*as<TileOp>(run), copy.pad, known, declined);
    return run;
  });
  return fits ? loop : Stmt();
}

}  // namespace

Stmt lower_cp_async(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const std::optional<CopyRegions> copy = copy_regions(op, context, declined);
  if (!copy) return {};
  const int64_t element = copy->src.buffer->dtype.bytes();
  *declined = "no run of its elements is 4, 8 or 16 bytes";
  for (const int64_t width : kWidths) {
    if (width < element) continue;
    const Stmt loop = over_runs(op, *copy, width / element, *context.facts, declined);
    if (!loop) continue;
    const Stmt commit = tile_op(TileOpcode::CommitAsync, {}, op.span);
    if (op.op == TileOpcode::CopyAsync) return seq({loop, commit});
    return seq({loop, commit, tile_op(TileOpcode::WaitAsync, {}, op.span)});
  }
  return {};
}

Stmt lower_run_async(const TileOp& op, const LoweringContext& context, std::string* declined) {
  if (!is_async_run(op, op.expr(op.row().index_of("pad")), *context.facts, declined)) return {};
  return tile_op(TileOpcode::CpAsync, {op.region(0), op.region(1)}, op.span);
}

Stmt keep_cp_async(const TileOp& op, const LoweringContext& context, std::string* declined) {
  if (context.scope == OpScope::Block && is_written_for_threads(*context.kernel)) {
    *declined = "the kernel is written for its threads, and no thread runs it";
    return {};
  }
  const Expr pad = number_imm(0, op.region(1).buffer->dtype);
  return is_async_run(op, pad, *context.facts, declined) ? Stmt(make_ref<TileOp>(op)) : Stmt();
}

}  // namespace helve::cuda
