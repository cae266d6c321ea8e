// Matrix products by the tensor cores of warpgroups: T.gemm becomes T.wgmma.
// It is waited for where it stands; overlap_products moves the wait.
// The factors stay in shared memory, which gets the layout of the instruction before it is copied to; C is a fragment
// with the layout of the instruction's sums, and so may A be with that of its factor.
#include <fmt/format.h>

#include "factors.h"
#include "helve/analysis/thread_form.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/group_product.h"
#include "helve/layout/warp.h"
#include "helve/support/diagnostic.h"
#include "schedules.h"

namespace helve::cuda {

namespace {

std::optional<ProductShape> product_of_groups(const TileOp& gemm, std::string* reason) {
  const std::optional<ProductShape> shape = product_on_tensor_cores(gemm, true, reason);
  const std::optional<std::string> why = shape ? uneven_for_groups(*shape) : std::nullopt;
  if (!why) return shape;
  *reason = *why;
  return std::nullopt;
}

/// The division of C among the warpgroups of the block.
std::optional<GroupProduct> division(const ProductShape& shape, int64_t threads, int64_t unit, std::string* reason) {
  const int64_t groups = threads / kWarpgroup;
  if (threads % kWarpgroup != 0) {
    *reason = fmt::format("{} threads are no whole warpgroups of {}", threads, kWarpgroup);
    return std::nullopt;
  }
  const std::optional<GroupProduct> out = divided_product(shape, groups, unit);
  if (!out) {
    *reason = fmt::format("{} warpgroups do not divide {} x {} sums into equal parts of {} x {}", groups, shape.m,
                          shape.n, kGroupRows, unit);
  }
  return out;
}

/// A factor in memory, and how the instruction finds it.
std::optional<MatrixDescriptor> descriptor_of(const Region& factor, const FactorTile& tile, std::string* reason) {
  const std::optional<Layout> layout = tile_layout(factor, reason);
  if (!layout) return std::nullopt;
  const std::optional<MatrixDescriptor> out = matrix_descriptor(*layout, tile, reason);
  if (!out) *reason = fmt::format("'{}' is no factor: {}", factor.buffer->name, *reason);
  return out;
}

/// The layout of a whole buffer whose tiles have this one.
Layout layout_of_buffer(const Buffer& buffer, const Layout& tile) {
  const std::vector<int64_t> shape = *constant_shape(buffer.shape);
  Iters outer;
  int64_t stride = tile.size();  // a multiple of the swizzle's period, since rows come in eights
  for (size_t d = shape.size() - 2; d-- > 0; stride *= shape[d]) {
    outer.insert(outer.begin(), {shape[d], stride, axes::m()});
  }
  for (const Iter& iter : tile.shard()) outer.push_back(iter);
  return Layout(outer, {}, {}, tile.swizzle());
}

bool has_instruction(const LoweringContext& context, std::string* declined) {
  if (context.machine->group_products) return true;
  *declined = "it needs sm_90a";
  return false;
}

}  // namespace

Stmt lower_wgmma(const TileOp& op, const LoweringContext& context, std::string* declined) {
  if (!has_instruction(context, declined)) return {};
  const std::optional<ProductShape> shape = product_of_groups(op, declined);
  if (!shape) return {};
  if (const Buffer* registers = registers_of_threads_among({&op.region(0), &op.region(2)}, *context.kernel)) {
    *declined = fmt::format("T.threads loops access '{}', so it is registers of single threads", registers->name);
    return {};
  }
  if (!division(*shape, context.kernel->threads, kProductColumns, declined)) return {};
  const FactorTile left = tile_of_a(*shape), right = tile_of_b(*shape);
  const bool registers = op.region(0).buffer->scope == MemoryScope::Fragment;
  std::optional<MatrixDescriptor> a, b;
  if (!registers) a = descriptor_of(op.region(0), left, declined);
  if (a || registers) b = descriptor_of(op.region(1), right, declined);
  if (!b) return {};
  const int64_t unit = column_unit(*b, right);
  const std::optional<GroupProduct> groups = division(*shape, context.kernel->threads, unit, declined);
  if (!groups) return {};
  // Beside the threads there is at least a warp that copies.
  const int64_t begin = context.machine->launch_registers(context.kernel->threads + kWarp);
  if (groups->launch_registers() > begin) {
    *declined = fmt::format("{} threads begin with {} registers each, and an instruction of {} columns needs {}",
                            context.kernel->threads, begin, groups->n, groups->launch_registers());
    return {};
  }
  const BufferRef& c = op.region(2).buffer;
  if (!c->layout) {
    *declined = "C has no layout";
    return {};
  }
  if (registers) {
    const BufferRef& factor = op.region(0).buffer;
    if (!factor->layout || !group_factor(*groups, *shape).equivalent(thread_layout_of(*factor))) {
      *declined = "the layout of A is not that of the instruction's factor";
      return {};
    }
  }
  const Layout sums = thread_layout_of(*c);
  if (!group_sums(*groups).equivalent(sums)) {
    *declined = "the layout of C is not that of the instruction's sums";
    return {};
  }
  const std::vector<Expr> extents = {int_imm(shape->m), int_imm(shape->n), int_imm(shape->k)};
  const Stmt product =
      tile_op(TileOpcode::Wgmma,
              {op.region(0), op.region(1), op.region(2), extents, a ? descriptor_operand(*a) : std::vector<Expr>(),
               descriptor_operand(*b), sums, shape->transpose_a, shape->transpose_b, *op.clears()},
              op.span);
  return seq({tile_op(TileOpcode::WgmmaFence, {}, op.span), product, tile_op(TileOpcode::WgmmaCommit, {}, op.span),
              tile_op(TileOpcode::WgmmaWait, {}, op.span)},
             op.span);
}

Stmt keep_wgmma(const TileOp& op, const LoweringContext& context, std::string* declined) {
  return has_instruction(context, declined) ? keep(op, context, declined) : Stmt();
}

std::vector<std::pair<BufferRef, Layout>> place_wgmma(const TileOp& op, const Kernel& kernel) {
  std::string reason;
  const std::optional<ProductShape> shape = product_of_groups(op, &reason);
  if (!shape) return {};
  // Slabs along N are not wider than what an instruction reads.
  const std::optional<GroupProduct> widest = division(*shape, kernel.threads, kProductColumns, &reason);
  if (!widest) return {};
  const FactorTile tiles[] = {tile_of_a(*shape), tile_of_b(*shape)};
  const int64_t parts[] = {tiles[0].columns, tiles[1].depth_last ? tiles[1].columns : widest->n};
  std::vector<std::pair<BufferRef, Layout>> out;
  std::optional<Layout> right;
  for (const size_t i : {0, 1}) {
    const Region& factor = op.region(i);
    if (factor.buffer->scope == MemoryScope::Fragment) continue;
    right = tile_layout(factor, &reason);
    if (!right || factor.buffer->layout) continue;
    right = factor_layout(tiles[i], parts[i]);
    out.emplace_back(factor.buffer, layout_of_buffer(*factor.buffer, *right));
  }
  const std::optional<MatrixDescriptor> b = right ? matrix_descriptor(*right, tiles[1], &reason) : std::nullopt;
  const std::optional<GroupProduct> groups =
      b ? division(*shape, kernel.threads, column_unit(*b, tiles[1]), &reason) : std::nullopt;
  if (!groups) return out;
  out.emplace_back(op.region(2).buffer, group_sums(*groups));
  if (op.region(0).buffer->scope == MemoryScope::Fragment) {
    out.emplace_back(op.region(0).buffer, group_factor(*groups, *shape));
  }
  return out;
}

}  // namespace helve::cuda
