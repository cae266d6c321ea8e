// Questions put to sums.
#include "helve/arith/sum.h"

#include <gtest/gtest.h>

#include "helve/ir/expr/build.h"

namespace helve::testing {
namespace {

TEST(Sums, CoefficientOfAVariable) {
  const VarRef x = make_var("x"), y = make_var("y");
  const auto of = [&](const Expr& e) { return coefficient_of(sum_of(e), x.get()); };
  EXPECT_EQ(of(Expr(x)), 1);
  EXPECT_EQ(of(Expr(y) - Expr(x) * int_imm(3) + int_imm(7)), -3);
  EXPECT_EQ(of((Expr(x) + Expr(y)) * int_imm(4) - Expr(x) * int_imm(4)), 0) << "it cancels";
  EXPECT_EQ(of(Expr(y)), 0);
  EXPECT_EQ(of(int_imm(5)), 0);
  EXPECT_EQ(of(Expr(x) * Expr(y)), std::nullopt) << "it grows by y";
  EXPECT_EQ(of(Expr(x) + floor_div(Expr(x), int_imm(2))), std::nullopt) << "it stands inside of a factor";
}

}  // namespace
}  // namespace helve::testing
