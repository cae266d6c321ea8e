// Products of fragments: the layouts are those of the instruction, for every division among warps, and nothing else is
// taken for one.
#include "helve/ir/tensor/matrix_product.h"

#include <gtest/gtest.h>

#include "helve/layout/warp.h"

namespace helve {
namespace {

/// The element of an operand that a lane's register holds, by the tables of the PTX ISA for mma.m16n8k8 (tf32), k16 and
/// k32: word `reg / packed`, element `reg % packed` of it.
struct Element {
  int64_t row, column;
};
Element element_of_a(int64_t lane, int64_t reg, int64_t packed) {
  const int64_t word = reg / packed;
  return {lane / 4 + word % 2 * 8, lane % 4 * packed + reg % packed + word / 2 * 4 * packed};
}
Element element_of_b(int64_t lane, int64_t reg, int64_t packed) {
  return {lane % 4 * packed + reg % packed + reg / packed * 4 * packed, lane / 4};
}
Element element_of_c(int64_t lane, int64_t reg) { return {lane / 4 + (reg < 2 ? 0 : 8), lane % 4 * 2 + reg % 2}; }

/// Does every warp hold, in the registers that the product names, the elements of its part?
void expect_parts(const ProductShape& shape, const WarpGrid& warps) {
  const ProductLayouts layouts = product_layouts(shape, warps);
  std::string reason;
  const std::optional<MatrixProduct> product = matrix_product(shape, layouts, &reason);
  ASSERT_TRUE(product) << reason;
  EXPECT_EQ(product->m * warps.rows * 16, shape.m);
  EXPECT_EQ(product->n * warps.columns * 8, shape.n);
  EXPECT_EQ(product->k * shape.depth(), shape.k);
  const int64_t packed = shape.packed();
  const auto holds = [&](const Layout& layout, int64_t index, int64_t thread, int64_t reg) {
    for (const Point& place : layout.apply(index)) {
      if (place.at(axes::tx()) == thread && place.at(axes::reg()) == reg) return true;
    }
    return false;
  };
  for (int64_t warp = 0; warp < warps.rows * warps.columns; ++warp) {
    for (int64_t lane = 0; lane < kWarp; ++lane) {
      const int64_t thread = warp * kWarp + lane;
      for (int64_t i = 0; i < product->m; ++i) {
        for (int64_t j = 0; j < product->n; ++j) {
          for (int64_t l = 0; l < product->k; ++l) {
            // Which part of C it is says the layout; the factors' parts must be of its rows and its columns.
            const int64_t c = product->c[static_cast<size_t>(i * product->n + j)];
            const std::optional<int64_t> first = layouts.c.inverse(Point{{axes::tx(), warp * kWarp}, {axes::reg(), c}});
            ASSERT_TRUE(first);
            const int64_t row = *first / shape.n, column = *first % shape.n;
            ASSERT_EQ(row % 16, 0);
            ASSERT_EQ(column % 8, 0);
            const int64_t a = product->a[static_cast<size_t>(i * product->k + l)];
            const int64_t b = product->b[static_cast<size_t>(l * product->n + j)];
            for (int64_t reg = 0; reg < 4 * packed; ++reg) {
              const Element at = element_of_a(lane, reg, packed);
              const int64_t m = row + at.row, k = l * shape.depth() + at.column;
              EXPECT_TRUE(holds(layouts.a, shape.transpose_a ? k * shape.m + m : m * shape.k + k, thread, a + reg));
            }
            for (int64_t reg = 0; reg < 2 * packed; ++reg) {
              const Element at = element_of_b(lane, reg, packed);
              const int64_t k = l * shape.depth() + at.row, n = column + at.column;
              EXPECT_TRUE(holds(layouts.b, shape.transpose_b ? n * shape.k + k : k * shape.n + n, thread, b + reg));
            }
            for (int64_t reg = 0; reg < 4; ++reg) {
              const Element sum = element_of_c(lane, reg);
              EXPECT_TRUE(holds(layouts.c, (row + sum.row) * shape.n + column + sum.column, thread, c + reg));
            }
          }
        }
      }
    }
  }
}

TEST(MatrixProduct, EveryWarpHoldsTheElementsOfItsPart) {
  for (const bool transpose_a : {false, true}) {
    for (const bool transpose_b : {false, true}) {
      for (const WarpGrid warps : {WarpGrid{1, 1}, {2, 1}, {1, 2}, {2, 2}, {1, 3}, {4, 1}}) {
        for (const int64_t own_rows : {1, 2}) {
          for (const int64_t own_columns : {1, 3}) {
            for (const int64_t depths : {1, 2}) {
              for (const int64_t bits : {8, 16, 32}) {
                ProductShape shape{16 * own_rows * warps.rows, 8 * own_columns * warps.columns, 256 / bits * depths,
                                   transpose_a, transpose_b};
                shape.bits = bits;
                expect_parts(shape, warps);
              }
            }
          }
        }
      }
    }
  }
}

TEST(MatrixProduct, OtherLayoutsAreNone) {
  const ProductShape shape{32, 16, 16};
  const ProductLayouts good = product_layouts(shape, {2, 1});
  std::string reason;
  ASSERT_TRUE(matrix_product(shape, good, &reason));
  ProductLayouts bad = good;
  bad.a = product_layouts(shape, {1, 2}).a;  // of other rows than the sums
  EXPECT_FALSE(matrix_product(shape, bad, &reason));
  EXPECT_EQ(reason, "a warp does not hold the elements that its sums need");
  bad = good;
  bad.b = Layout(good.b.shard());  // without the copy for the second warp
  EXPECT_FALSE(matrix_product(shape, bad, &reason));
  EXPECT_EQ(reason, "a warp does not hold the elements that its sums need");
  bad = good;
  bad.c = Layout(Iters{{64, 1, axes::tx()}, {8, 1, axes::reg()}});  // half a row a thread
  EXPECT_FALSE(matrix_product(shape, bad, &reason));
  EXPECT_FALSE(matrix_product({32, 16, 24}, good, &reason));
  EXPECT_EQ(reason, "M, N, K of 32 x 16 x 24 are no multiples of 16, 8, 16");
}

/// So a product's sums, rounded, are the next one's factor without a move.
TEST(MatrixProduct, SumsStandWhereAFactorOfTheNextStands) {
  const ProductShape shape{32, 16, 16}, next{32, 8, 16};
  EXPECT_TRUE(product_layouts(shape, {2, 1}).c.equivalent(product_layouts(next, {2, 1}).a));
}

}  // namespace
}  // namespace helve
