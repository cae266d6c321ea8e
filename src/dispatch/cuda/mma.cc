// Matrix products by the tensor cores of each warp: T.gemm becomes T.mma.
// C is a fragment with the layout of the instruction's sums (place_products gives it one); the factors come from shared
// memory, 16 of K at a time, into fragments with the layouts that go with it.
#include <fmt/format.h>

#include "helve/analysis/tensor_core_product.h"
#include "helve/analysis/thread_form.h"
#include "helve/ir/expr/number.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/layout/warp.h"
#include "over_elements.h"
#include "schedules.h"

namespace helve::cuda {

namespace {

/// The part of a factor for one step of K, as it stands in memory.
Region part_of(const Region& factor, bool depth_first, const Expr& begin) {
  Region out = factor;
  size_t dim = 0;
  for (Range& range : out.ranges) {
    if (range.point) continue;
    if ((dim++ == 0) == depth_first) {
      range.begin = range.begin + begin;
      range.extent = int_imm(kProductDepth);
    }
  }
  return out;
}

/// The factor's part in registers, by matrices where they serve it.
Stmt loaded(const Region& part, const BufferRef& fragment, const LoweringContext& context, const Span& span) {
  const Stmt copy = tile_op(TileOpcode::Copy, {part, whole_region(fragment)}, span);
  std::string declined;
  if (const Stmt by_matrices = lower_ldmatrix(*as<TileOp>(copy), context, &declined)) return by_matrices;
  return lower_copy(*as<TileOp>(copy), context, &declined);
}

}  // namespace

Stmt lower_mma(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const Region &a = op.region(0), &b = op.region(1), &c = op.region(2);
  const std::optional<ProductShape> shape = tensor_core_product(op, declined);
  if (!shape) return {};
  if (is_written_for_threads(*context.kernel)) {
    *declined = "the kernel is written for its threads";
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
  step.k = kProductDepth;
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
  const Expr begin = Expr(k) * int_imm(kProductDepth);
  const std::vector<Expr> extents = {int_imm(step.m), int_imm(step.n), int_imm(step.k)};
  const Stmt product = tile_op(TileOpcode::Mma,
                               {whole_region(left), whole_region(right), whole_region(c.buffer), extents, layouts.a,
                                layouts.b, sums, step.transpose_a, step.transpose_b},
                               op.span);
  const Stmt body = seq({alloc(left), alloc(right), loaded(part_of(a, step.transpose_a, begin), left, context, op.span),
                         loaded(part_of(b, !step.transpose_b, begin), right, context, op.span), product});
  std::vector<Stmt> out;
  if (*op.clears()) {
    out.push_back(over_elements(c.shape(), *context.facts, [&](const std::vector<Expr>& at, const Facts&) {
      return store(c.buffer, region_indices(c, at), number_imm(0, kFloat32));
    }));
  }
  out.push_back(for_loop(LoopKind::Unroll, k, int_imm(shape->k / kProductDepth), body, op.span));
  return seq(std::move(out));
}

Stmt keep_mma(const TileOp& op, const LoweringContext&, std::string*) { return Stmt(make_ref<TileOp>(op)); }

}  // namespace helve::cuda
