// Which products of tiles the tensor cores compute, and how the warps of a block share one.
// Divisions are few, so all are tried.
#include "helve/analysis/tensor_core_product.h"

#include "helve/ir/tensor/buffer_layout.h"

namespace helve {

namespace {

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

}  // namespace

std::optional<ProductShape> tensor_core_product(const TileOp& gemm, std::string* reason) {
  const auto fails = [&](std::string why) -> std::optional<ProductShape> {
    *reason = std::move(why);
    return std::nullopt;
  };
  const Region &a = gemm.region(0), &b = gemm.region(1), &c = gemm.region(2);
  const DType factor = a.buffer->dtype;
  if (!factor.is_float() || factor.bits != 16 || b.buffer->dtype != factor) {
    return fails("the factors are not both of float16 or of bfloat16");
  }
  if (c.buffer->dtype != kFloat32) return fails("the sums are not of float32");
  if (a.buffer->scope != MemoryScope::Shared || b.buffer->scope != MemoryScope::Shared) {
    return fails("the factors do not stand in shared memory");
  }
  if (c.buffer->scope != MemoryScope::Fragment || !c.whole()) return fails("the sums are not a whole fragment");
  const std::optional<std::vector<int64_t>> left = constant_shape(a.shape()), sums = constant_shape(c.shape());
  if (!left || !sums) return fails("the shapes are not constant");
  const ProductShape shape{(*sums)[0], (*sums)[1], (*left)[gemm.transposes(0) ? 0 : 1], gemm.transposes(0),
                           gemm.transposes(1)};
  if (const std::optional<std::string> why = uneven(shape)) return fails(*why);
  return shape;
}

std::optional<WarpGrid> warp_grid(const ProductShape& shape, int64_t warps) {
  std::optional<WarpGrid> best;
  const auto reads = [&](const WarpGrid& grid) { return shape.m * grid.columns + shape.n * grid.rows; };
  for (const WarpGrid& grid : even_grids(shape, warps)) {
    if (!best || reads(grid) < reads(*best)) best = grid;
  }
  return best;
}

std::optional<WarpGrid> warp_grid_of(const ProductShape& shape, int64_t warps, const Layout& sums) {
  ProductShape step = shape;
  step.k = kProductDepth;
  for (const WarpGrid& grid : even_grids(shape, warps)) {
    if (product_layouts(step, grid).c.equivalent(sums)) return grid;
  }
  return std::nullopt;
}

}  // namespace helve
