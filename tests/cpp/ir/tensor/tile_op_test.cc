// What a tile operation says of itself: the name that kernels call it by, and the dimension that it names.
#include "helve/ir/tensor/tile_op.h"

#include <gtest/gtest.h>

#include "helve/ir/tensor/stmt.h"

namespace helve {
namespace {

Ref<TileOp> sum_over(int64_t dim) {
  const auto region = [](const char* name) {
    return whole_region(make_buffer(name, kFloat32, MemoryScope::Shared, {int_imm(4), int_imm(8)}));
  };
  Ref<TileOp> op = make_ref<TileOp>();
  op->op = TileOpcode::ReduceSum;
  op->operands = {region("X"), region("Y"), dim, true};
  return op;
}

TEST(TileOp, CountsDimensionsFromBothEnds) {
  EXPECT_EQ(sum_over(0)->dimension(3), 0u);
  EXPECT_EQ(sum_over(2)->dimension(3), 2u);
  EXPECT_EQ(sum_over(-1)->dimension(3), 2u);
  EXPECT_EQ(sum_over(-3)->dimension(3), 0u);
}

TEST(TileOp, NamesNoDimensionPastEitherEnd) {
  EXPECT_EQ(sum_over(3)->dimension(3), std::nullopt);
  EXPECT_EQ(sum_over(-4)->dimension(3), std::nullopt);
  EXPECT_EQ(sum_over(0)->dimension(0), std::nullopt);
  EXPECT_EQ(sum_over(-1)->dimension(0), std::nullopt);
}

TEST(TileOp, IsNamedAsInKernels) {
  EXPECT_EQ(operation_text(*sum_over(0)), "T.reduce_sum");
  TileOp gather;
  gather.op = TileOpcode::CommAllGather;
  EXPECT_EQ(operation_text(gather), "T.comm.all_gather");
}

TEST(DefaultTile, CoversTheLastTwoDimensions) {
  EXPECT_EQ(default_tile(0), (std::vector<int64_t>{}));
  EXPECT_EQ(default_tile(1), (std::vector<int64_t>{32}));
  EXPECT_EQ(default_tile(2), (std::vector<int64_t>{32, 32}));
  EXPECT_EQ(default_tile(4), (std::vector<int64_t>{1, 1, 32, 32}));
}

}  // namespace
}  // namespace helve
