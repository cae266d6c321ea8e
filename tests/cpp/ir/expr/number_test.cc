// Whole numbers as constants: one node for each kind of dtype.
#include "helve/ir/expr/number.h"

#include <gtest/gtest.h>

#include "helve/ir/expr/equal.h"

namespace helve {
namespace {

TEST(Number, IsTheConstantThatTheDtypeHas) {
  const DType int8{TypeCode::Int, 8}, uint64{TypeCode::UInt, 64}, bfloat16{TypeCode::BFloat, 16};
  for (int64_t value : {0, 1}) {
    EXPECT_TRUE(structural_equal(number_imm(value, kBool), bool_imm(value == 1)));
    for (DType dtype : {kIndex, int8, uint64}) {
      EXPECT_TRUE(structural_equal(number_imm(value, dtype), constant_of(value, dtype)));
    }
    for (DType dtype : {kFloat32, bfloat16}) {
      EXPECT_TRUE(structural_equal(number_imm(value, dtype), float_imm(static_cast<double>(value), dtype)));
    }
  }
  EXPECT_EQ(number_imm(1, kFloat32)->kind, ExprKind::FloatImm);
}

}  // namespace
}  // namespace helve
