// Tile loops on shapes that their tiles do not divide.
#include <cmath>

#include "arrays.h"

namespace helve::testing {
namespace {

/// Copies between a tensor and a local buffer of the same shape.
Stmt copy_whole(const BufferRef& src, const BufferRef& dst) {
  const Expr pad = dst->dtype.is_float() ? float_imm(0, dst->dtype) : int_imm(0, dst->dtype);
  return tile_op(TileOpcode::Copy, {whole_region(src), whole_region(dst), pad});
}

struct Extents {
  int64_t m, n, tm, tn;
};

class TileLoops : public ::testing::TestWithParam<Extents> {};

TEST_P(TileLoops, BroadcastAlongTrailingDimensionsAndMaskTails) {
  const auto [m, n, tm, tn] = GetParam();
  const BufferRef a = param("A", kFloat32, {m, n}), r = param("r", kFloat32, {m}), out = param("out", kFloat32, {m, n});
  const BufferRef x = shared("X", kFloat32, {m, n}, {tm, tn}), v = shared("v", kFloat32, {m}, {tm});
  const BufferRef c = shared("c", kFloat32, {m, 1}, {tm, 1});
  const VarRef i = make_var("i"), j = make_var("j"), i2 = make_var("i"), j2 = make_var("j");
  const Expr value = tile_load(x, {i, j}) * tile_load(v, {i}) + tile_load(c, {i, idx(0)}) * f32(100);
  const Stmt body = one_block({alloc(x), alloc(v), alloc(c), copy_whole(a, x), copy_whole(r, v),
                               for_tiles(c, {i2, j2}, true, tile_store(c, {i2, j2}, tile_load(v, {i2}) + f32(1))),
                               for_tiles(x, {i, j}, true, tile_store(x, {i, j}, value)), copy_whole(x, out)});
  const FunctionRef f = function("main", {a, r, out}, body);
  const size_t size = static_cast<size_t>(m * n);
  std::vector<float> in = small_numbers<float>(size, 1), rows = small_numbers<float>(static_cast<size_t>(m), 2),
                     got(size);
  interp::run(f, {tensor(in, {m, n}), tensor(rows, {m}), tensor(got, {m, n})});
  for (int64_t p = 0; p < m; ++p) {
    for (int64_t q = 0; q < n; ++q) {
      const size_t at = static_cast<size_t>(p * n + q);
      const float row = rows[static_cast<size_t>(p)];
      ASSERT_EQ(got[at], in[at] * row + (row + 1) * 100) << p << " " << q;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, TileLoops,
                         ::testing::Values(Extents{7, 10, 3, 4}, Extents{32, 32, 32, 32}, Extents{1, 1, 32, 32},
                                           Extents{33, 5, 32, 2}, Extents{6, 9, 1, 9}, Extents{0, 4, 2, 2}));

TEST(TileLoop, RunsOnceForEachTileRowMajor) {
  const BufferRef out = param("out", kInt32, {5, 7});
  const BufferRef x = shared("X", kInt32, {5, 7}, {2, 3});
  const BufferRef count = make_buffer("count", kInt32, MemoryScope::Local, {idx(1)});
  const VarRef i = make_var("i"), j = make_var("j");
  const Stmt step = store(count, {idx(0)}, load(count, {idx(0)}) + int_imm(1, kInt32));
  const FunctionRef f =
      function("main", {out},
               one_block({alloc(x), alloc(count), store(count, {idx(0)}, int_imm(0, kInt32)),
                          for_tiles(x, {i, j}, false, seq({tile_store(x, {i, j}, load(count, {idx(0)})), step})),
                          copy_whole(x, out)}));
  const std::vector<int32_t> got = output_of<int32_t>(f, {5, 7});
  for (int64_t p = 0; p < 5; ++p) {
    for (int64_t q = 0; q < 7; ++q) EXPECT_EQ(got[static_cast<size_t>(p * 7 + q)], p / 2 * 3 + q / 3);
  }
}

TEST(TileLoop, ReadsTheWholeTileBeforeItStores) {
  // X[0, 0] is 1: every element of the tile gains 1, also those after the store to X[0, 0]
  const BufferRef out = param("out", kInt32, {4, 4});
  const BufferRef x = shared("X", kInt32, {4, 4}, {4, 4});
  const VarRef p = make_var("p"), q = make_var("q"), i = make_var("i"), j = make_var("j");
  const Stmt init =
      serial(p, idx(4), {serial(q, idx(4), {store(x, {p, q}, cast(Expr(p) * idx(4) + q + idx(1), kInt32))})});
  const Stmt raise = tile_store(x, {i, j}, tile_load(x, {i, j}) + load(x, {idx(0), idx(0)}));
  const FunctionRef f =
      function("main", {out}, one_block({alloc(x), init, for_tiles(x, {i, j}, true, raise), copy_whole(x, out)}));
  const std::vector<int32_t> got = output_of<int32_t>(f, {4, 4});
  for (int e = 0; e < 16; ++e) EXPECT_EQ(got[static_cast<size_t>(e)], e + 2);
}

TEST(TileLoop, SmallFloatsRoundAtTheStore) {
  constexpr DType kBFloat16{TypeCode::BFloat, 16};
  const BufferRef out = param("out", kFloat32, {3});
  const BufferRef x = shared("X", kBFloat16, {3}, {2});
  const VarRef i = make_var("i"), p = make_var("p");
  const Expr v = tile_load(x, {i});
  const FunctionRef f =
      function("main", {out},
               one_block({alloc(x), serial(p, idx(3), {store(x, {p}, float_imm(1.0078125, kBFloat16))}),
                          for_tiles(x, {i}, true, tile_store(x, {i}, v * v)), copy_whole(x, out)}));
  // 1.0078125^2 = 1.01568603515625 rounds to 1.015625
  for (float got : output_of<float>(f, {3})) EXPECT_EQ(got, 1.015625f);
}

}  // namespace
}  // namespace helve::testing
