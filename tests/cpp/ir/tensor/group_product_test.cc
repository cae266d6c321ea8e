// Products of warpgroups: sums stand where the instruction leaves them, and what a descriptor describes is the layout
// that it was made from.
#include "helve/ir/tensor/group_product.h"

#include <gtest/gtest.h>

#include <bit>

#include "helve/layout/warp.h"

namespace helve {
namespace {

/// PTX ISA, "WGMMA .m64nNk16: D": row and column of register i of a thread of the warpgroup.
int64_t row_of(int64_t thread, int64_t i) { return thread / 32 * 16 + thread % 32 / 4 + 8 * (i % 4 / 2); }
int64_t column_of(int64_t thread, int64_t i) { return 8 * (i / 4) + thread % 4 * 2 + i % 2; }

TEST(GroupProduct, SumsAreWhereTheInstructionLeavesThem) {
  for (const int64_t n : {8, 24, 64, 256, 320}) {
    for (const int64_t m : {64, 128, 192, 256}) {
      for (const int64_t groups : {1, 2, 3, 4}) {
        const ProductShape shape{m, n, 32};
        const std::optional<GroupProduct> product = divided_product(shape, groups, 8);
        if (!product) continue;
        const Layout sums = group_sums(*product);
        EXPECT_EQ(product->rows * product->groups.rows * 64, m);
        EXPECT_EQ(product->columns * product->n * product->groups.columns, n);
        EXPECT_LE(product->n, 256);
        EXPECT_EQ(sums.span(axes::tx()), groups * 128);
        EXPECT_EQ(sums.span(axes::reg()), product->registers());
        EXPECT_TRUE(sums.is_injective());
        EXPECT_TRUE(group_product(shape, sums, 8));
        for (int64_t group = 0; group < groups; ++group) {
          for (int64_t part = 0; part < product->rows; ++part) {
            const int64_t first_row = product->first_row(part, group / product->groups.columns);
            for (int64_t j = 0; j < product->columns; ++j) {
              const int64_t first = group % product->groups.columns * product->own_columns() + j * product->n;
              for (int64_t thread = 0; thread < 128; ++thread) {
                for (int64_t i = 0; i < product->n / 2; ++i) {
                  const Point place =
                      sums.apply({first_row + row_of(thread, i), first + column_of(thread, i)}, {m, n}).front();
                  ASSERT_EQ(place.at(axes::tx()), group * 128 + thread);
                  ASSERT_EQ(place.at(axes::reg()), product->first_register(part, j) + i);
                }
              }
            }
          }
        }
      }
    }
  }
}

/// Slabs of `width` columns, `slab` elements apart, of groups of eight rows, `group` elements apart.
Layout slabs(const FactorTile& tile, int64_t width, int64_t group, int64_t slab) {
  const int64_t unit = 128 / tile.bits;
  const int units = std::countr_zero(static_cast<uint64_t>(width / unit));
  const int base = std::countr_zero(static_cast<uint64_t>(unit));
  return Layout({{tile.rows / 8, group, axes::m()},
                 {8, width, axes::m()},
                 {tile.columns / width, slab, axes::m()},
                 {width, 1, axes::m()}},
                {}, {}, units == 0 ? Swizzle{} : Swizzle{units, base, 3});
}

/// Every element that an instruction reads is the one that the layout places there.
void expect_described(const Layout& layout, const FactorTile& tile, int64_t part) {
  std::string reason;
  const std::optional<MatrixDescriptor> descriptor = matrix_descriptor(layout, tile, &reason);
  ASSERT_TRUE(descriptor) << reason;
  EXPECT_EQ(descriptor->leading % 16, 0);
  EXPECT_EQ(descriptor->stride % 16, 0);
  const int64_t step = 256 / tile.bits;
  for (int64_t line = 0; line < tile.lines(); line += part) {
    for (int64_t k = 0; k < tile.depth(); k += step) {
      const int64_t start = descriptor_start(layout, tile, line, k);
      EXPECT_EQ(start * tile.bits % 128, 0);
      for (int64_t i = 0; i < part; ++i) {
        for (int64_t depth = 0; depth < step; ++depth) {
          const int64_t found = described_address(*descriptor, tile, start, i, depth);
          ASSERT_EQ(found, layout.apply(tile.at(line + i, k + depth)).front().at(axes::m()));
        }
      }
    }
  }
}

TEST(GroupProduct, DescriptorsDescribeTheirLayouts) {
  for (const int64_t bits : {8, 16, 32}) {
    for (const int64_t lines : {8, 24, 64, 128, 176}) {
      for (const int64_t steps : {1, 2, 3, 4, 8}) {
        for (const bool depth_last : {true, false}) {
          if (!depth_last && bits != 16) continue;
          const int64_t depth = steps * 256 / bits;
          const FactorTile tile =
              depth_last ? FactorTile{lines, depth, true, bits} : FactorTile{depth, lines, false, bits};
          const int64_t part = lines % 64 == 0 ? 64 : 8;
          for (const int64_t units : {1, 2, 4, 8}) {
            const int64_t width = units * 128 / bits;
            if (tile.columns % width != 0) continue;
            const int64_t unit = depth_last ? part : std::max(part, width);
            for (const int64_t gap : {0, 1, 2}) {  // periods between groups
              const int64_t group = 8 * width * (1 + gap), slab = group * (tile.rows / 8 + gap);
              expect_described(slabs(tile, width, group, slab), tile, unit);
              // Groups of all slabs together: the slabs are neighbours.
              expect_described(slabs(tile, width, 8 * tile.columns, 8 * width), tile, unit);
            }
          }
          const int64_t unit = 128 / bits;
          EXPECT_TRUE(factor_layout(tile, unit).equivalent(slabs(tile, unit, 8 * unit, unit * tile.rows)));
          const Layout widest = factor_layout(tile);
          EXPECT_TRUE(widest.is_injective());
          EXPECT_EQ(widest.span(axes::m()), tile.rows * tile.columns);
        }
      }
    }
  }
}

/// PTX ISA, "WGMMA: register fragments for A": row and k of element e of word i of a thread, `packed` in a word.
int64_t row_of_factor(int64_t thread, int64_t i) { return thread / 32 * 16 + thread % 32 / 4 + 8 * (i % 2); }
int64_t depth_of_factor(int64_t thread, int64_t i, int64_t e, int64_t packed) {
  return i / 2 * 4 * packed + thread % 4 * packed + e;
}

TEST(GroupProduct, FactorsInRegistersStandWhereTheInstructionTakesThem) {
  for (const int64_t bits : {8, 16, 32}) {
    for (const int64_t groups : {1, 2, 4}) {
      for (const int64_t m : {64, 128}) {
        ProductShape shape{m, 64, 3 * 256 / bits};
        shape.bits = bits;
        const std::optional<GroupProduct> product = divided_product(shape, groups, 8);
        ASSERT_TRUE(product);
        const Layout layout = group_factor(*product, shape);
        const int64_t packed = shape.packed();
        for (int64_t thread = 0; thread < groups * 128; ++thread) {
          const int64_t group = thread / 128 / product->groups.columns;
          for (int64_t part = 0; part < product->rows; ++part) {
            for (int64_t word = 0; word < 4 * product->depths; ++word) {
              for (int64_t e = 0; e < packed; ++e) {
                const int64_t row = product->first_row(part, group) + row_of_factor(thread % 128, word % 4);
                const int64_t k = word / 4 * shape.depth() + depth_of_factor(thread % 128, word % 4, e, packed);
                const int64_t reg = (part * product->depths * 4 + word) * packed + e;
                bool held = false;
                for (const Point& place : layout.apply({row, k}, {shape.m, shape.k})) {
                  held |= place.at(axes::tx()) == thread && place.at(axes::reg()) == reg;
                }
                ASSERT_TRUE(held);
              }
            }
          }
        }
      }
    }
  }
}

TEST(GroupProduct, IntegersHaveFewerWidths) {
  ProductShape shape{64, 40, 32};
  shape.bits = 8;
  EXPECT_EQ(divided_product(shape, 1, 8)->n, 40);
  shape.integers = true;
  EXPECT_EQ(divided_product(shape, 1, 8)->n, 8);
  shape.n = 96;
  EXPECT_EQ(divided_product(shape, 1, 8)->n, 96);
}

TEST(GroupProduct, OtherLayoutsHaveNone) {
  const FactorTile tile{64, 128, true, 16};
  std::string reason;
  const auto refused = [&](const Layout& layout) { return !matrix_descriptor(layout, tile, &reason); };
  const Layout rows({{64, 128, axes::m()}, {128, 1, axes::m()}});
  EXPECT_TRUE(refused(rows));
  EXPECT_EQ(reason, "its layout S[(64, 128) : (128, 1)] is none that wgmma reads, as S[(64, 2, 64) : (64, 4096, 1)] ^ "
                    "Swizzle(3, 3, 3) is");
  EXPECT_TRUE(refused(Layout(rows.shard(), {}, {}, Swizzle{3, 3, 3})));  // of rows of 256 bytes
  EXPECT_TRUE(refused(slabs(tile, 64, 8 * 64 + 8, 8 * 8 * 72)));  // groups begin within the period
  EXPECT_TRUE(refused(slabs(tile, 64, 8 * 64, 64 * 64 + 64)));  // and so do slabs
  const Layout good = factor_layout(tile);
  EXPECT_FALSE(refused(good));
  EXPECT_TRUE(refused(Layout(good.shard(), {}, {}, Swizzle{3, 4, 3})));
  EXPECT_TRUE(refused(Layout(good.shard(), {}, {}, Swizzle{2, 3, 3})));
  EXPECT_TRUE(refused(Layout(good.shard())));  // without its swizzle
}

TEST(GroupProduct, WarpgroupsTakeRowsFirst) {
  const std::optional<GroupProduct> two = divided_product({128, 256, 64}, 2, 8);
  ASSERT_TRUE(two);
  EXPECT_EQ(two->groups.rows, 2);
  EXPECT_EQ(two->n, 256);
  const std::optional<GroupProduct> across = divided_product({64, 256, 64}, 2, 8);
  ASSERT_TRUE(across);
  EXPECT_EQ(across->groups.columns, 2);
  EXPECT_EQ(across->n, 128);
  EXPECT_FALSE(divided_product({64, 8, 64}, 2, 8));
  EXPECT_EQ(divided_product({64, 320, 64}, 1, 64)->n, 64);  // slabs of 64: 320 = 5 * 64
  EXPECT_EQ(divided_product({64, 320, 64}, 1, 8)->n, 160);
  EXPECT_EQ(*uneven_for_groups({32, 8, 0}), "M, N, K of 32 x 8 x 0 are no positive multiples of 64, 8, 16");
}

}  // namespace
}  // namespace helve
