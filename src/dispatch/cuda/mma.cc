// Matrix products by the tensor cores of each warp: T.gemm becomes T.mma.
// C is a fragment with the layout of the instruction's accumulators, which the schedule demands; the factors are loaded
// from shared memory, the depth of an instruction at a time, into fragments with the corresponding layouts.
#include <fmt/format.h>

#include "element_nest.h"
#include "factors.h"
#include "helve/analysis/thread_form.h"
#include "helve/ir/expr/number.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/matrix_product.h"
#include "helve/layout/warp.h"
#include "over_elements.h"
#include "schedules.h"

namespace helve::cuda {

namespace {

/// There are few grids, so all are tried.
std::vector<WarpGrid> even_grids(const ProductShape& shape, int64_t warps) {
  std::vector<WarpGrid> out;
  for (int64_t rows = 1; rows <= warps; ++rows) {
    const WarpGrid grid{rows, warps / rows};
    if (warps % rows != 0) continue;
    if (shape.m % (kProductRows * grid.rows) != 0 || shape.n % (kProductColumns * grid.columns) != 0) continue;
    out.push_back(grid);
  }
  return out;
}

/// The product of a T.gemm that T.mma can compute; nothing, with the reason, for others.
std::optional<ProductShape> product_of(const TileOp& gemm, std::string* reason) {
  const std::optional<ProductShape> shape = product_on_tensor_cores(gemm, false, reason);
  const std::optional<std::string> why = shape ? uneven(*shape) : std::nullopt;
  if (!why) return shape;
  *reason = *why;
  return std::nullopt;
}

/// The division of C among `warps` that reads the fewest elements of the factors; nothing if none is even.
std::optional<WarpGrid> warp_grid(const ProductShape& shape, int64_t warps) {
  std::optional<WarpGrid> best;
  const auto reads = [&](const WarpGrid& grid) { return shape.m * grid.columns + shape.n * grid.rows; };
  for (const WarpGrid& grid : even_grids(shape, warps)) {
    if (!best || reads(grid) < reads(*best)) best = grid;
  }
  return best;
}

/// The division of C that its layout represents; nothing if it represents none.
std::optional<WarpGrid> warp_grid_of(const ProductShape& shape, int64_t warps, const Layout& sums) {
  ProductShape step = shape;
  step.k = shape.depth();
  for (const WarpGrid& grid : even_grids(shape, warps)) {
    if (product_layouts(step, grid).c.equivalent(sums)) return grid;
  }
  return std::nullopt;
}

/// The part of a factor for one step of K, in memory.
Region part_of(const Region& factor, bool depth_first, const Expr& begin, int64_t depth) {
  Region out = factor;
  size_t dim = 0;
  for (Range& range : out.ranges) {
    if (range.point) continue;
    if ((dim++ == 0) == depth_first) {
      range.begin = range.begin + begin;
      range.extent = int_imm(depth);
    }
  }
  return out;
}

/// A T.copy of the factor's part into registers, by a schedule of its own.
Stmt loaded(const Region& part, const BufferRef& fragment, const LoweringContext& context, const Span& span) {
  const Stmt copy = tile_op(TileOpcode::Copy, {part, whole_region(fragment)}, span);
  return lower_tile_op(*as<TileOp>(copy), cuda_schedules(), context);
}

}  // namespace

Stmt lower_mma(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const Region &a = op.region(0), &b = op.region(1), &c = op.region(2);
  const std::optional<ProductShape> shape = product_of(op, declined);
  if (!shape) return {};
  if (const Buffer* registers = registers_of_threads_among({&a, &b, &c}, *context.kernel)) {
    *declined = fmt::format("T.threads loops access '{}', so it is registers of single threads", registers->name);
    return {};
  }
  const int64_t all = context.kernel->threads / kWarp;
  if (!warp_grid(*shape, all)) {
    *declined = fmt::format("{} warps do not divide {} x {} sums into equal parts of {} x {}", all, shape->m, shape->n,
                            kProductRows, kProductColumns);
    return {};
  }
  if (!c.buffer->layout) {
    *declined = "C has no layout";
    return {};
  }
  const Layout sums = thread_layout_of(*c.buffer);
  const std::optional<WarpGrid> warps = warp_grid_of(*shape, all, sums);
  if (!warps) {
    *declined = "the layout of C is not that of the instruction's sums";
    return {};
  }
  ProductShape step = *shape;
  step.k = step.depth();
  const ProductLayouts layouts = product_layouts(step, *warps);
  const auto fragment = [&](const Region& of, const Layout& layout, int64_t rows, int64_t columns, bool turned) {
    if (turned) std::swap(rows, columns);
    const BufferRef plain = make_buffer(of.buffer->name + "_part", of.buffer->dtype, MemoryScope::Fragment,
                                        {int_imm(rows), int_imm(columns)});
    return with_layout(plain, layout, op.span);
  };
  const BufferRef left = fragment(a, layouts.a, step.m, step.k, step.transpose_a);
  const BufferRef right = fragment(b, layouts.b, step.k, step.n, step.transpose_b);
  const VarRef k = make_var("k");
  const Expr begin = Expr(k) * int_imm(step.k);
  const std::vector<Expr> extents = {int_imm(step.m), int_imm(step.n), int_imm(step.k)};
  const Stmt product = tile_op(TileOpcode::Mma,
                               {whole_region(left), whole_region(right), whole_region(c.buffer), extents, layouts.a,
                                layouts.b, sums, step.transpose_a, step.transpose_b},
                               op.span);
  const Stmt body =
      seq({alloc(left), alloc(right), loaded(part_of(a, step.transpose_a, begin, step.k), left, context, op.span),
           loaded(part_of(b, !step.transpose_b, begin, step.k), right, context, op.span), product});
  std::vector<Stmt> out;
  if (*op.clears()) {
    out.push_back(over_elements(c.shape(), *context.facts, [&](const std::vector<Expr>& at, const Facts&) {
      return store(c.buffer, region_indices(c, at), number_imm(0, c.buffer->dtype));
    }));
  }
  out.push_back(for_loop(LoopKind::Unroll, k, int_imm(shape->k / step.k), body, op.span));
  return seq(std::move(out));
}

std::vector<std::pair<BufferRef, Layout>> place_mma(const TileOp& op, const Kernel& kernel) {
  std::string reason;
  const std::optional<ProductShape> shape = product_of(op, &reason);
  const std::optional<WarpGrid> grid = shape ? warp_grid(*shape, kernel.threads / kWarp) : std::nullopt;
  if (!grid) return {};
  ProductShape step = *shape;
  step.k = step.depth();
  return {{op.region(2).buffer, product_layouts(step, *grid).c}};
}

}  // namespace helve::cuda
