// How copies fall into boxes, and which a tensor map can make.
#include "helve/analysis/box_copy.h"

#include <gtest/gtest.h>

#include "helve/ir/tensor/buffer_layout.h"
#include "helve/layout/notation.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

const DType kHalf{TypeCode::Float, 16};

struct Run {
  int64_t begin, extent;
};

Region region(const BufferRef& buffer, const std::vector<Run>& ranges) {
  Region out{buffer, {}};
  for (const Run& r : ranges) out.ranges.push_back({idx(r.begin), idx(r.extent), false});
  return out;
}

/// "box 4x32, 2 of dimension 0 by 4", or the reason.
std::string boxes(const Region& src, const Region& dst) {
  std::string reason;
  const std::optional<CopyBoxes> found = copy_boxes(src, dst, &reason);
  if (!found) return reason;
  std::string out = "box ";
  for (size_t d = 0; d < found->box.size(); ++d) out += (d ? "x" : "") + std::to_string(found->box[d]);
  for (const CopyBoxes::Loop& loop : found->loops) {
    out += ", " + std::to_string(loop.count) + " of dimension " + std::to_string(loop.tensor) + " by " +
           std::to_string(loop.step);
  }
  return out + (found->swizzle ? ", swizzled " + std::to_string(found->swizzle) : "");
}

std::string refusal(const Region& src, const Region& dst, Expr pad = int_imm(0)) {
  std::string reason;
  const DType t = src.buffer->dtype;
  const Expr value = t.is_float() ? constant_of(static_cast<double>(*int_value(pad)), t) : pad;
  const Stmt copy = tile_op(TileOpcode::CpAsyncBulkTensor, {src, dst});
  return is_box_copy(*as<TileOp>(copy), value, {}, &reason) ? "" : reason;
}

TEST(BoxCopy, ATileIsABox) {
  const BufferRef a = param("A", kHalf, {100, 200}), x = shared("X", kHalf, {64, 64});
  EXPECT_EQ(boxes(region(a, {{64, 64}, {128, 64}}), whole_region(x)), "box 64x64");
  EXPECT_EQ(boxes(whole_region(x), region(a, {{64, 64}, {128, 64}})), "box 64x64");
  EXPECT_EQ(refusal(region(a, {{63, 64}, {136, 64}}), whole_region(x)), "");
  EXPECT_EQ(refusal(region(a, {{64, 64}, {129, 64}}), whole_region(x)),
            "a box is not known to begin at a multiple of 16 bytes along the last dimension of 'A'");
  EXPECT_EQ(refusal(whole_region(x), region(a, {{64, 64}, {128, 64}})), "");
}

TEST(BoxCopy, LargeExtentsAndGapsAreLoops) {
  const BufferRef a = param("A", kHalf, {1000, 2000});
  const auto of = [&](int64_t rows, int64_t columns) {
    return boxes(region(a, {{0, rows}, {0, columns}}), whole_region(shared("X", kHalf, {rows, columns})));
  };
  EXPECT_EQ(of(512, 64), "box 256x64, 2 of dimension 0 by 256");
  EXPECT_EQ(of(300, 64), "box 150x64, 2 of dimension 0 by 150");
  EXPECT_EQ(of(257, 64), "box 1x64, 257 of dimension 0 by 1");
  EXPECT_EQ(of(4, 512), "box 1x256, 4 of dimension 0 by 1, 2 of dimension 1 by 256");
  EXPECT_EQ(of(4, 20), "a row of its boxes is not a multiple of 16 bytes");
  EXPECT_EQ(of(4, 264), "box 1x88, 4 of dimension 0 by 1, 3 of dimension 1 by 88");
  EXPECT_EQ(of(0, 64), "it has no elements");
  const BufferRef wide = shared("W", kHalf, {64, 128});
  EXPECT_EQ(boxes(region(a, {{0, 64}, {0, 64}}), region(wide, {{0, 64}, {64, 64}})),
            "box 1x64, 64 of dimension 0 by 1");
}

TEST(BoxCopy, PointsAndDimensions) {
  const BufferRef a = param("A", kFloat32, {2, 3, 4, 8}), x = shared("X", kFloat32, {3, 2, 8});
  Region source = region(a, {{1, 1}, {0, 3}, {1, 2}, {0, 8}});
  source.ranges[0].point = true;
  EXPECT_EQ(boxes(source, whole_region(x)), "box 1x3x2x8");
  Region column = region(param("C", kFloat32, {32, 4}), {{0, 32}, {1, 1}});
  column.ranges[1].point = true;
  EXPECT_EQ(boxes(column, whole_region(shared("Y", kFloat32, {32}))),
            "a row of its boxes is not a multiple of 16 bytes");
  const BufferRef six = param("S", kFloat32, {1, 1, 1, 1, 1, 8}), y = shared("Z", kFloat32, {1, 1, 1, 1, 1, 8});
  EXPECT_EQ(boxes(whole_region(six), whole_region(y)), "'S' has 6 dimensions, and a map 1 to 5");
}

TEST(BoxCopy, WhatAMapAsksFor) {
  const BufferRef a = param("A", kFloat32, {60, 66}), x = shared("X", kFloat32, {4, 32});
  const BufferRef y = shared("Y", kHalf, {4, 32});
  EXPECT_EQ(refusal(region(a, {{0, 4}, {0, 32}}), whole_region(x)),
            "rows of 'A' are not known to begin at multiples of 16 bytes");
  EXPECT_EQ(refusal(region(a, {{0, 4}, {0, 32}}), whole_region(y)), "'A' and 'Y' have different dtypes");
  EXPECT_EQ(refusal(whole_region(x), whole_region(y)), "'Y' and 'X' are not a tensor of the call and shared memory");
  const BufferRef b = param("B", kFloat32, {60, 64}), ring = shared("R", kFloat32, {3, 4, 12});
  Region stage = region(ring, {{1, 1}, {0, 4}, {0, 12}});
  stage.ranges[0].point = true;
  EXPECT_EQ(refusal(region(b, {{0, 4}, {0, 12}}), stage),
            "a box is not known to begin at a multiple of 128 bytes in 'R'");
  EXPECT_EQ(refusal(region(b, {{0, 4}, {0, 32}}), whole_region(x), int_imm(1)), "");
  EXPECT_EQ(refusal(region(b, {{58, 4}, {0, 32}}), whole_region(x), int_imm(1)), "it pads with another value than 0");
  EXPECT_EQ(refusal(region(b, {{58, 4}, {0, 32}}), whole_region(x)), "");
}

TEST(BoxCopy, LayoutsOfMaps) {
  const std::string others = "no map has the layout of 'X', but row-major order, and that with Swizzle(3, 3, 3)";
  const BufferRef a = param("A", kHalf, {128, 256});
  const auto of = [&](int64_t columns, const std::string& layout) {
    const BufferRef x = with_layout(shared("X", kHalf, {64, columns}), parse_layout(layout), {});
    return boxes(region(a, {{0, 64}, {0, columns}}), whole_region(x));
  };
  EXPECT_EQ(of(64, "S[(64, 64) : (64, 1)] ^ Swizzle(3, 3, 3)"), "box 64x64, swizzled 128");
  EXPECT_EQ(of(32, "S[(64, 32) : (32, 1)] ^ Swizzle(2, 3, 3)"), "box 64x32, swizzled 64");
  EXPECT_EQ(of(16, "S[(64, 16) : (16, 1)] ^ Swizzle(1, 3, 3)"), "box 64x16, swizzled 32");
  EXPECT_EQ(of(64, "S[(64, 64) : (64, 1)]"), "box 64x64");
  EXPECT_EQ(of(64, "S[(64, 64) : (64, 1)] ^ Swizzle(2, 3, 3)"), others);
  EXPECT_EQ(of(64, "S[(64, 64) : (64, 1)] ^ Swizzle(3, 2, 4)"), others);
  EXPECT_EQ(of(64, "S[(64, 64) : (72, 1)]"), others);
}

TEST(BoxCopy, SwizzlesThatAMapCouldHave) {
  const BufferRef a = param("A", kFloat32, {128, 256});
  const auto of = [&](const std::vector<int64_t>& shape, int64_t stage) -> std::string {
    const BufferRef x = shared("X", kFloat32, {3, shape[0], shape[1]});
    Region memory = region(x, {{stage, 1}, {0, shape[0]}, {0, shape[1]}});
    memory.ranges[0].point = true;
    const Stmt copy = tile_op(TileOpcode::CpAsyncBulkTensor, {region(a, {{0, shape[0]}, {0, shape[1]}}), memory});
    const std::optional<Swizzle> found = box_swizzle(*as<TileOp>(copy));
    return found ? std::to_string(found->bits) + std::to_string(found->base) + std::to_string(found->shift) : "none";
  };
  EXPECT_EQ(of({8, 32}, 1), "323");
  EXPECT_EQ(of({8, 16}, 1), "223");
  EXPECT_EQ(of({8, 8}, 1), "123");
  EXPECT_EQ(of({8, 64}, 1), "none");
  EXPECT_EQ(of({4, 32}, 1), "none");  // the second stage begins within a period
  EXPECT_EQ(of({4, 32}, 2), "323");
}

}  // namespace
}  // namespace helve::testing
