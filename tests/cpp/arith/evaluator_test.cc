// Values at points: what has one, and what has none.
#include "helve/arith/evaluator.h"

#include <gtest/gtest.h>

#include <array>

#include "helve/ir/expr/build.h"

namespace helve {
namespace {

constexpr DType kByte{TypeCode::UInt, 8}, kSmall{TypeCode::Int, 8}, kLong{TypeCode::UInt, 64};

class Evaluators : public ::testing::Test {
 protected:
  std::optional<int64_t> at(const Expr& e, int64_t x, int64_t y) const {
    return Evaluator(e, {x_, y_}).at(std::array{x, y});
  }
  VarRef x_ = make_var("x"), y_ = make_var("y"), other_ = make_var("other");
  Expr x = x_, y = y_, other = other_, none = floor_div(int_imm(1), y);
};

TEST_F(Evaluators, AnIndexIsExactOrNothing) {
  EXPECT_EQ(at(floor_div(x, int_imm(4)) * int_imm(100) + floor_mod(x, y), -9, 5), -299);
  EXPECT_EQ(at(x + y, INT64_MAX, 0), INT64_MAX);
  EXPECT_EQ(at(x + y, INT64_MAX, 1), std::nullopt);
  EXPECT_EQ(at(none, 0, 0), std::nullopt);
}

TEST_F(Evaluators, DataWraps) {
  EXPECT_EQ(at(cast(x, kByte), 257, 0), 1);
  EXPECT_EQ(at(cast(cast(x, kSmall) + cast(y, kSmall), kIndex), 127, 1), -128);
  EXPECT_EQ(at(cast(x, kBool), 2, 0), 1);
}

TEST_F(Evaluators, LargeUnsignedValuesAreNoIndex) {
  const Expr large = cast(x, kLong);
  EXPECT_EQ(at(large, 7, 0), 7);
  EXPECT_EQ(at(large, -1, 0), std::nullopt);
  EXPECT_EQ(at(cast(large, kIndex), -1, 0), std::nullopt);
  EXPECT_EQ(at(less(int_imm(5, kLong), large), -1, 0), 1);  // 2^64 - 1
}

TEST_F(Evaluators, WhatIsNotNeededNeedsNoValue) {
  const Expr is_zero = apply(Op::Eq, {y, int_imm(0)}), undefined = less(none, x);
  EXPECT_EQ(at(select(is_zero, x, none), 3, 0), 3);
  EXPECT_EQ(at(apply(Op::Or, {is_zero, undefined}), 3, 0), 1);
  EXPECT_EQ(at(apply(Op::And, {apply(Op::Not, {is_zero}), undefined}), 3, 0), 0);
  EXPECT_EQ(at(apply(Op::Or, {undefined, is_zero}), 3, 0), std::nullopt);
}

TEST_F(Evaluators, OnlyTheVariablesHaveValues) {
  EXPECT_EQ(at(x + other, 1, 1), std::nullopt);
  EXPECT_EQ(at(select(less(x, y), x, other), 1, 2), 1);
  EXPECT_EQ(at(cast(float_imm(1.0, kFloat32), kIndex) + x, 1, 1), std::nullopt);
  EXPECT_EQ(at(less(float_imm(1.0, kFloat32), float_imm(2.0, kFloat32)), 1, 1), std::nullopt);
}

TEST_F(Evaluators, ManyOccurrencesAreEvaluatedOnce) {
  Expr sum = x;
  for (int n = 0; n < 60; ++n) sum = floor_mod(sum + sum, int_imm(1000));
  int64_t expected = 3;
  for (int n = 0; n < 60; ++n) expected = expected * 2 % 1000;
  EXPECT_EQ(at(sum, 3, 0), expected);
}

}  // namespace
}  // namespace helve
