// Text of expressions.
#include "helve/ir/expr/text.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <limits>
#include <random>

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/rounding.h"

namespace helve {
namespace {

struct Array final : Storage {
  size_t rank_ = 1;
  size_t rank() const override { return rank_; }
};

StorageRef array(const char* name, size_t rank, DType dtype = kFloat32) {
  Ref<Array> a = make_ref<Array>();
  a->name = name;
  a->dtype = dtype;
  a->rank_ = rank;
  return StorageRef(a);
}

const Expr i = Expr(make_var("i")), j = Expr(make_var("j")), k = Expr(make_var("k"));
const Expr x = Expr(make_var("x", kFloat32)), y = Expr(make_var("y", kFloat32));
const Expr p = Expr(make_var("p", kBool)), q = Expr(make_var("q", kBool)), r = Expr(make_var("r", kBool));

Expr op(Op o, std::vector<Expr> args) { return apply(o, std::move(args)); }

TEST(ExprText, ParenthesesStandWherePythonWouldRegroup) {
  EXPECT_EQ(to_text((i + j) + k), "i + j + k");
  EXPECT_EQ(to_text(i + (j + k)), "i + (j + k)");
  EXPECT_EQ(to_text(i - (j - k)), "i - (j - k)");
  EXPECT_EQ(to_text((i + j) * k), "(i + j) * k");
  EXPECT_EQ(to_text(i + j * k), "i + j * k");
  EXPECT_EQ(to_text(floor_div(i * j, k)), "i * j // k");
  EXPECT_EQ(to_text(i * floor_div(j, k)), "i * (j // k)");
  EXPECT_EQ(to_text(op(Op::Neg, {i + j})), "-(i + j)");
  EXPECT_EQ(to_text(op(Op::Neg, {op(Op::Neg, {i})})), "--i");
  EXPECT_EQ(to_text(op(Op::Neg, {i}) * j), "-i * j");
  EXPECT_EQ(to_text(i * op(Op::Neg, {j})), "i * -j");
  EXPECT_EQ(to_text(less(less(i, j), p)), "(i < j) < p");
  EXPECT_EQ(to_text(less(p, less(i, j))), "p < (i < j)");
  EXPECT_EQ(to_text(op(Op::Eq, {op(Op::Not, {p}), q})), "(not p) == q");
  EXPECT_EQ(to_text(op(Op::Not, {op(Op::Eq, {p, q})})), "not p == q");
  EXPECT_EQ(to_text(op(Op::And, {op(Op::Or, {p, q}), r})), "(p or q) and r");
  EXPECT_EQ(to_text(op(Op::Or, {p, op(Op::And, {q, r})})), "p or (q and r)");
  EXPECT_EQ(to_text(op(Op::Or, {op(Op::Or, {op(Op::And, {p, q}), r}), op(Op::Not, {p})})), "(p and q) or r or not p");
  EXPECT_EQ(to_text(op(Op::And, {p, op(Op::And, {q, r})})), "p and (q and r)");
  EXPECT_EQ(to_text(op(Op::BitAnd, {op(Op::BitOr, {i, j}), op(Op::ShiftLeft, {j, k + i})})), "(i | j) & j << k + i");
  EXPECT_EQ(to_text(op(Op::BitNot, {i + j})), "~(i + j)");
  EXPECT_EQ(to_text(min(i + j, max(j, k))), "T.min(i + j, T.max(j, k))");
  EXPECT_EQ(to_text(select(less(i, j), x, y)), "T.if_then_else(i < j, x, y)");
}

TEST(ExprText, ConstantsTakeTheirTypeFromANeighbour) {
  EXPECT_EQ(to_text(x * float_imm(2, kFloat32)), "x * 2.0");
  EXPECT_EQ(to_text(float_imm(-2, kFloat32) * x), "-2.0 * x");
  EXPECT_EQ(to_text(x - float_imm(-1e20, kFloat32)), "x - -1e+20");
  EXPECT_EQ(to_text(float_imm(2, kFloat32)), "T.float32(2.0)");
  EXPECT_EQ(to_text(int_imm(-7, kInt32)), "T.int32(-7)");
  EXPECT_EQ(to_text(int_imm(-7)), "-7");
  EXPECT_EQ(to_text(int_imm(-1) * i), "-1 * i");
  EXPECT_EQ(to_text(select(p, x, float_imm(0, kFloat32))), "T.if_then_else(p, x, 0.0)");
  EXPECT_EQ(to_text(op(Op::Exp, {float_imm(1, kFloat64)})), "T.exp(T.float64(1.0))");
}

TEST(ExprText, NothingIsLeftForPythonsOwnArithmetic) {
  EXPECT_EQ(to_text(int_imm(1) + int_imm(2)), "T.index(1) + 2");
  EXPECT_EQ(to_text((int_imm(1) + int_imm(2)) * int_imm(3)), "(T.index(1) + 2) * 3");
  EXPECT_EQ(to_text(less(int_imm(1), int_imm(2))), "T.index(1) < 2");
  EXPECT_EQ(to_text(float_imm(1, kFloat32) + float_imm(2, kFloat32)), "T.float32(1.0) + 2.0");
  EXPECT_EQ(to_text(logical_and(p, bool_imm(true))), "p and T.bool(True)");
  EXPECT_EQ(to_text(logical_and(bool_imm(false), p)), "T.bool(False) and p");
  EXPECT_EQ(to_text(op(Op::Not, {bool_imm(false)})), "not T.bool(False)");
  EXPECT_EQ(to_text(select(bool_imm(true), i, int_imm(3))), "T.if_then_else(T.bool(True), i, 3)");
  EXPECT_EQ(to_text(select(p, int_imm(2), int_imm(3))), "T.if_then_else(p, T.index(2), 3)");
  EXPECT_EQ(to_text(op(Op::Eq, {p, bool_imm(true)})), "p == True");
}

TEST(ExprText, TypedAndBareForms) {
  Namer namer;
  EXPECT_EQ(to_typed_text(int_imm(3), namer), "T.index(3)");
  EXPECT_EQ(to_typed_text(bool_imm(true), namer), "T.bool(True)");
  EXPECT_EQ(to_typed_text(i + int_imm(3), namer), "i + 3");
  EXPECT_EQ(to_text(float_imm(3, kFloat32), namer, true), "3.0");
  EXPECT_EQ(to_text(int_imm(-3, kInt64), namer, true), "-3");
}

TEST(ExprText, ExtremeNumbers) {
  const DType u64{TypeCode::UInt, 64}, bf16{TypeCode::BFloat, 16};
  Namer namer;
  EXPECT_EQ(to_text(int_imm(-1, u64), namer, true), "T.uint64(18446744073709551615)");
  EXPECT_EQ(to_text(int_imm(5, u64), namer, true), "5");
  EXPECT_EQ(to_text(extreme_imm(kInt64, true)), "T.int64(-9223372036854775808)");
  EXPECT_EQ(to_text(extreme_imm(kFloat32, true)), "-T.infinity(\"float32\")");
  EXPECT_EQ(to_text(extreme_imm(bf16, false)), "T.infinity(\"bfloat16\")");
  EXPECT_EQ(to_text(float_imm(std::nan(""), kFloat32)), "T.nan(\"float32\")");
  EXPECT_EQ(to_text(float_imm(-0.0, kFloat32)), "T.float32(-0.0)");
  EXPECT_EQ(to_text(float_imm(0.1, kFloat32)), "T.float32(0.1)");
  EXPECT_EQ(to_text(float_imm(0.1, kFloat64)), "T.float64(0.1)");
  EXPECT_EQ(to_text(float_imm(5e-324, kFloat64)), "T.float64(5e-324)");
}

TEST(ExprText, CastsAndSubscripts) {
  StorageRef a = array("A", 2), zero = array("Z", 0);
  EXPECT_EQ(to_text(cast(i, kFloat32) + x), "T.cast(i, \"float32\") + x");
  EXPECT_EQ(to_text(i + x), "T.cast(i, \"float32\") + x");
  EXPECT_EQ(to_text(load(a, {i + j, int_imm(3)})), "A[i + j, 3]");
  EXPECT_EQ(to_text(load(zero, {})), "Z[()]");
  EXPECT_EQ(to_text(tile_load(a, {i, j})), "A[i, j]");
}

/// What a reader makes of the digits: a double, then the dtype.
double read_back(const Expr& e) {
  Namer namer;
  return round_to(std::strtod(to_text(e, namer, true).c_str(), nullptr), e->dtype);
}

TEST(ExprText, EveryFiniteSmallFloatReadsBack) {
  for (const char* name : {"float8_e4m3", "float8_e5m2", "float16", "bfloat16"}) {
    const DType dtype = *parse_dtype(name);
    for (uint64_t bits = 0; bits < uint64_t{1} << dtype.bits; ++bits) {
      const double value = float_value(bits, dtype);
      if (std::isfinite(value)) {
        ASSERT_EQ(float_bits(read_back(float_imm(value, dtype)), dtype), bits) << name;
      }
    }
  }
}

TEST(ExprText, RandomFloatsReadBack) {
  std::mt19937_64 random(7);
  for (int n = 0; n < 200000; ++n) {
    for (DType dtype : {kFloat32, kFloat64}) {
      const uint64_t bits = dtype == kFloat32 ? random() >> 32 : random();
      const double value = float_value(bits, dtype);
      if (std::isfinite(value)) {
        ASSERT_EQ(float_bits(read_back(float_imm(value, dtype)), dtype), bits);
      }
    }
  }
}

struct Numbering final : Namer {
  int mark_of(const ExprNode& e) override { return e.kind == ExprKind::Var ? 4 : -1; }
};

TEST(ExprText, MarksEncloseTheirNodes) {
  Numbering namer;
  EXPECT_EQ(to_text(i * int_imm(2), namer), "\x01i\x02"
                                            "4\x02 * 2");
}

}  // namespace
}  // namespace helve
