// Scalar programs: exact values, faults, laziness of choices, text.
#include "helve/runtime/scalar_program.h"

#include <gtest/gtest.h>

#include <limits>

#include "helve/support/diagnostic.h"

namespace helve::runtime {
namespace {

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

using P = ScalarProgram;

int64_t apply(ScalarOp op, int64_t a, int64_t b) { return evaluate(P::binary(op, a, b), {}); }

std::string fault(const P& program, std::vector<int64_t> slots = {}, const std::vector<std::string>* names = nullptr) {
  try {
    evaluate(program, slots, names);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no fault";
}

TEST(ScalarProgram, FloorDivisionLaws) {
  for (int64_t a = -13; a <= 13; ++a) {
    for (int64_t b = -5; b <= 5; ++b) {
      if (b == 0) continue;
      const int64_t q = apply(ScalarOp::FloorDiv, a, b), r = apply(ScalarOp::FloorMod, a, b);
      EXPECT_EQ(q * b + r, a) << a << " " << b;
      EXPECT_TRUE(b > 0 ? (r >= 0 && r < b) : (r <= 0 && r > b)) << a << " " << b;
    }
  }
  EXPECT_EQ(apply(ScalarOp::FloorDiv, -7, 2), -4);
  EXPECT_EQ(apply(ScalarOp::FloorMod, -7, 2), 1);
  EXPECT_EQ(apply(ScalarOp::FloorMod, 7, -2), -1);
  EXPECT_EQ(apply(ScalarOp::FloorMod, kMin, -1), 0);
}

TEST(ScalarProgram, EveryOperator) {
  EXPECT_EQ(apply(ScalarOp::Add, 5, -9), -4);
  EXPECT_EQ(apply(ScalarOp::Sub, 5, -9), 14);
  EXPECT_EQ(apply(ScalarOp::Mul, 5, -9), -45);
  EXPECT_EQ(apply(ScalarOp::Min, 5, -9), -9);
  EXPECT_EQ(apply(ScalarOp::Max, 5, -9), 5);
  for (int64_t a : {-1, 0, 2}) {
    for (int64_t b : {-1, 0, 2}) {
      EXPECT_EQ(apply(ScalarOp::Lt, a, b), a < b);
      EXPECT_EQ(apply(ScalarOp::Le, a, b), a <= b);
      EXPECT_EQ(apply(ScalarOp::Eq, a, b), a == b);
      EXPECT_EQ(apply(ScalarOp::Ne, a, b), a != b);
      EXPECT_EQ(apply(ScalarOp::And, a, b), a && b);
      EXPECT_EQ(apply(ScalarOp::Or, a, b), a || b);
      EXPECT_EQ(evaluate(P::select(a, b, 7), {}), a ? b : 7);
    }
    EXPECT_EQ(evaluate(P::unary(ScalarOp::Not, a), {}), !a);
  }
}

TEST(ScalarProgram, ShiftsAreExact) {
  for (int64_t a :
       {int64_t{0}, int64_t{1}, int64_t{-1}, int64_t{3}, int64_t{-3}, kMax / 2, kMax / 2 + 1, kMin / 2, kMax, kMin}) {
    for (int64_t count : {0, 1, 2, 61, 62, 63, 64, 70, 1 << 20}) {
      __int128 exact = a;
      for (int64_t k = 0; k < std::min<int64_t>(count, 64); ++k) exact *= 2;
      const bool fits = a == 0 || (exact >= kMin && exact <= kMax);
      const P shift = P::binary(ScalarOp::ShiftLeft, a, P::slot(0));
      EXPECT_EQ(evaluate_defined(shift, std::vector<int64_t>{count}),
                fits ? std::optional(static_cast<int64_t>(exact)) : std::nullopt)
          << a << " << " << count;
      int64_t quotient = a;
      for (int64_t k = 0; k < std::min<int64_t>(count, 64); ++k) {
        quotient = quotient / 2 - (quotient % 2 < 0 ? 1 : 0);
      }
      EXPECT_EQ(evaluate(P::binary(ScalarOp::ShiftRight, a, P::slot(0)), std::vector<int64_t>{count}), quotient)
          << a << " >> " << count;
    }
  }
}

TEST(ScalarProgram, BitsAreThoseOfTwosComplement) {
  for (int64_t a : {0, 1, 5, -1, -6}) {
    for (int64_t b : {0, 3, -2}) {
      EXPECT_EQ(evaluate(P::binary(ScalarOp::BitAnd, a, P::slot(0)), std::vector<int64_t>{b}), a & b);
      EXPECT_EQ(evaluate(P::binary(ScalarOp::BitOr, a, P::slot(0)), std::vector<int64_t>{b}), a | b);
      EXPECT_EQ(evaluate(P::binary(ScalarOp::BitXor, a, P::slot(0)), std::vector<int64_t>{b}), a ^ b);
    }
  }
}

TEST(ScalarProgram, SlotsAndLongPrograms) {
  const std::vector<int64_t> slots{3, 10};
  EXPECT_EQ(evaluate(P::binary(ScalarOp::Sub, P::slot(1), P::slot(0)), slots), 7);
  P sum = 0;
  for (int i = 0; i < 500; ++i) sum = P::binary(ScalarOp::Add, P::slot(i % 2), sum);  // 501 values on the stack
  EXPECT_EQ(evaluate(sum, slots), 250 * 13);
  EXPECT_TRUE(P(4).is_constant());
  EXPECT_FALSE(P::slot(0).is_constant());
}

TEST(ScalarProgram, OverflowAndZeroDivisorAreErrors) {
  const std::vector<std::string> names{"M", ""};
  EXPECT_EQ(fault(P::binary(ScalarOp::Mul, P::binary(ScalarOp::Add, P::slot(0), 1), P::slot(1)), {kMax / 2, 8}, &names),
            "error[HV0620]: '(M + 1) * $1' does not fit 64 bits\nhelp: pass tensors with smaller extents");
  EXPECT_EQ(fault(P::binary(ScalarOp::FloorDiv, 6, P::slot(0)), {0}, &names),
            "error[HV0621]: '6 // M' divides by zero\nhelp: pass arguments that keep its divisor from 0");
  for (const P& program : {P::binary(ScalarOp::Add, kMax, 1), P::binary(ScalarOp::Sub, kMin, 1),
                           P::binary(ScalarOp::Mul, kMax, 2), P::binary(ScalarOp::FloorDiv, kMin, -1)}) {
    EXPECT_NE(fault(program).find("HV0620"), std::string::npos) << to_text(program);
  }
  EXPECT_NE(fault(P::binary(ScalarOp::FloorMod, 1, 0)).find("HV0621"), std::string::npos);
  EXPECT_EQ(fault(P::binary(ScalarOp::ShiftLeft, 1, P::slot(0)), {-3}),
            "error[HV0702]: a shift by -3\nhelp: shift by 0 or more; shift the other way for negative counts");
}

TEST(ScalarProgram, OnlyTheChosenSideCanFail) {
  const P bad = P::binary(ScalarOp::FloorDiv, 8, P::slot(0));
  const P guard = P::binary(ScalarOp::Ne, P::slot(0), 0);
  EXPECT_EQ(evaluate(P::select(guard, bad, -1), std::vector<int64_t>{0}), -1);
  EXPECT_EQ(evaluate(P::select(guard, bad, -1), std::vector<int64_t>{2}), 4);
  EXPECT_EQ(evaluate(P::binary(ScalarOp::And, guard, bad), std::vector<int64_t>{0}), 0);
  EXPECT_EQ(evaluate(P::binary(ScalarOp::Or, 1, bad), std::vector<int64_t>{0}), 1);
  EXPECT_NE(fault(P::select(1, bad, 3), {0}), "no fault");
  EXPECT_NE(fault(P::select(bad, 3, 3), {0}), "no fault");
  EXPECT_NE(fault(P::binary(ScalarOp::And, bad, 0), {0}), "no fault");
}

TEST(ScalarProgram, Text) {
  EXPECT_EQ(to_text(P::binary(ScalarOp::Min, P::slot(0), P::binary(ScalarOp::Sub, 4, -1))), "min($0, 4 - (-1))");
  EXPECT_EQ(to_text(P::select(P::unary(ScalarOp::Not, P::binary(ScalarOp::Lt, 1, 2)), 3, 4)),
            "select(not (1 < 2), 3, 4)");
}

TEST(ScalarProgram, UnsoundCodeIsAnInternalError) {
  EXPECT_THROW(verify(P(std::vector<ScalarInstruction>{{ScalarOp::Add}}), 0), InternalError);
  EXPECT_THROW(verify(P(std::vector<ScalarInstruction>{}), 0), InternalError);
  EXPECT_THROW(verify(P(std::vector<ScalarInstruction>{{ScalarOp::Const, 1}, {ScalarOp::Const, 2}}), 0), InternalError);
  EXPECT_THROW(verify(P::slot(2), 2), InternalError);
  EXPECT_NO_THROW(verify(P::slot(1), 2));
}

}  // namespace
}  // namespace helve::runtime
