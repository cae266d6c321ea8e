// How copies are divided into pieces, and which of them TMA can make.
#include "helve/analysis/bulk_copy.h"

#include <gtest/gtest.h>

#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

struct Box {
  int64_t begin, extent;
};

Region box(const BufferRef& buffer, const std::vector<Box>& boxes) {
  Region out{buffer, {}};
  for (const Box& b : boxes) out.ranges.push_back({idx(b.begin), idx(b.extent), false});
  return out;
}

/// The loops over pieces and the elements of a piece, as "2 x 8".
std::string pieces(const Region& src, const Region& dst) {
  std::string reason;
  const std::optional<BulkPieces> found = bulk_pieces(src, dst, &reason);
  if (!found) return reason;
  std::string out;
  for (const BulkPieces::Loop& loop : found->loops) out += std::to_string(*int_value(loop.extent)) + " x ";
  return out + std::to_string(*int_value(found->length));
}

std::string refusal(const Region& src, const Region& dst) {
  std::string reason;
  const Stmt copy = tile_op(TileOpcode::CpAsyncBulk, {src, dst});
  return is_bulk_copy(*as<TileOp>(copy), {}, &reason) ? "" : reason;
}

TEST(BulkCopy, RowsThatFollowEachOtherOnBothSidesAreOnePiece) {
  const BufferRef a = param("A", kFloat32, {6, 32}), x = shared("X", kFloat32, {4, 32});
  EXPECT_EQ(pieces(box(a, {{2, 4}, {0, 32}}), whole_region(x)), "128");
  const BufferRef wide = param("W", kFloat32, {6, 64});
  EXPECT_EQ(pieces(box(wide, {{2, 4}, {32, 32}}), whole_region(x)), "4 x 32");
  EXPECT_EQ(pieces(box(a, {{2, 4}, {0, 16}}), box(x, {{0, 4}, {16, 16}})), "4 x 16");
  const BufferRef cube = param("C", kFloat32, {2, 3, 4, 8}), y = shared("Y", kFloat32, {2, 3, 2, 8});
  EXPECT_EQ(pieces(box(cube, {{0, 2}, {0, 3}, {1, 2}, {0, 8}}), whole_region(y)), "2 x 3 x 16");
}

TEST(BulkCopy, NeighboursAreSideBySide) {
  const BufferRef a = param("A", kFloat32, {32, 4}), x = shared("X", kFloat32, {32});
  Region column = box(a, {{0, 32}, {1, 1}});
  column.ranges[1].point = true;
  EXPECT_EQ(pieces(column, whole_region(x)), "its elements are not side by side");
}

TEST(BulkCopy, WhatTheEngineAsksFor) {
  const BufferRef a = param("A", kFloat32, {6, 32}), x = shared("X", kFloat32, {4, 32});
  EXPECT_EQ(refusal(box(a, {{2, 4}, {0, 32}}), whole_region(x)), "");
  EXPECT_EQ(refusal(whole_region(x), box(a, {{2, 4}, {0, 32}})), "");
  EXPECT_EQ(refusal(box(a, {{3, 4}, {0, 32}}), whole_region(x)), "it may reach past the end of 'A'");
  EXPECT_EQ(refusal(box(a, {{0, 4}, {2, 8}}), box(x, {{0, 4}, {0, 8}})),
            "an address in 'A' is not known to be a multiple of 16 bytes");
  EXPECT_EQ(refusal(box(a, {{0, 4}, {0, 8}}), box(x, {{0, 4}, {2, 8}})),
            "an address in 'X' is not known to be a multiple of 16 bytes");
  EXPECT_EQ(refusal(box(a, {{0, 4}, {0, 6}}), box(x, {{0, 4}, {0, 6}})),
            "its pieces are not known to be multiples of 16 bytes");
  const BufferRef half = shared("H", DType{TypeCode::Float, 16}, {4, 32}), y = shared("Y", kFloat32, {4, 32});
  EXPECT_EQ(refusal(box(a, {{0, 4}, {0, 32}}), whole_region(half)), "it converts float32 to float16");
  EXPECT_EQ(refusal(whole_region(x), whole_region(y)), "'X' and 'Y' are not a global tensor and shared memory");
}

TEST(BulkCopy, RowsNeedAStrideOfWholeUnits) {
  const BufferRef a = param("A", kFloat32, {6, 33}), x = shared("X", kFloat32, {4, 32});
  EXPECT_EQ(refusal(box(a, {{0, 4}, {0, 32}}), whole_region(x)),
            "an address in 'A' is not known to be a multiple of 16 bytes");
}

}  // namespace
}  // namespace helve::testing
