// The type rules of expressions, with the exact text of every refusal.
#include "helve/ir/expr/build.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "helve/ir/expr/equal.h"
#include "helve/support/diagnostic.h"

namespace helve {
namespace {

const DType kI8{TypeCode::Int, 8}, kU8{TypeCode::UInt, 8}, kF16{TypeCode::Float, 16}, kBF16{TypeCode::BFloat, 16};

Expr var(DType dtype) { return Expr(make_var("v", dtype)); }

template <class F>
std::string fault(F&& f) {
  try {
    f();
  } catch (const UserError& e) {
    return e.what();
  }
  return "no fault";
}

struct Array final : Storage {
  size_t rank() const override { return 2; }
};
StorageRef array() {
  Ref<Array> a = make_ref<Array>();
  a->name = "A";
  a->dtype = kFloat32;
  return StorageRef(a);
}

TEST(Build, MixingWidensWithinAKindAndIndexFollows) {
  auto sum = [](DType a, DType b) { return (var(a) + var(b))->dtype; };
  EXPECT_EQ(sum(kI8, kInt32), kInt32);
  EXPECT_EQ(sum(kF16, kFloat32), kFloat32);
  EXPECT_EQ(sum(kFloat64, kBF16), kFloat64);
  EXPECT_EQ(sum(kIndex, kI8), kI8);
  EXPECT_EQ(sum(kFloat32, kIndex), kFloat32);
  EXPECT_EQ(sum(kIndex, kIndex), kIndex);
  EXPECT_EQ(less(var(kI8), var(kInt32))->dtype, kBool);
}

TEST(Build, MixingKindsIsRefused) {
  EXPECT_EQ(fault([] { var(kF16) + var(kBF16); }), "error[HV0204]: float16 and bfloat16 cannot be combined by '+'\n"
                                                   "help: convert both sides to float32: T.cast(x, \"float32\")");
  EXPECT_EQ(fault([] { var(kI8) * var(kU8); }), "error[HV0204]: int8 and uint8 cannot be combined by '*'\n"
                                                "help: write T.cast(v, \"int8\") in place of v");
  EXPECT_EQ(fault([] { max(var(kInt32), var(kFloat32)); }),
            "error[HV0204]: int32 and float32 cannot be combined by 'max'\n"
            "help: write T.cast(v, \"float32\") in place of v");
  EXPECT_EQ(fault([] { less(var(kBool), var(kInt32)); }), "error[HV0204]: bool and int32 cannot be combined by '<'\n"
                                                          "help: write T.cast(v, \"int32\") in place of v");
}

TEST(Build, OperandsOfTheWrongTypeAreRefused) {
  EXPECT_EQ(fault([] { apply(Op::Exp, {var(kInt32)}); }),
            "error[HV0206]: an operand of 'exp' is int32, expected a float\nhelp: convert with T.cast(x, dtype)");
  EXPECT_EQ(fault([] { logical_and(var(kInt32), var(kBool)); }),
            "error[HV0206]: an operand of 'and' is int32, expected bool\nhelp: compare it, for example with '!= 0'");
  EXPECT_EQ(fault([] { apply(Op::BitXor, {var(kFloat32), var(kInt32)}); }),
            "error[HV0206]: an operand of '^' is float32, expected an integer\nhelp: convert with T.cast(x, dtype)");
  EXPECT_EQ(fault([] { var(kBool) + var(kBool); }),
            "error[HV0206]: an operand of '+' is bool, expected a number\nhelp: convert with T.cast(x, dtype)");
  EXPECT_EQ(fault([] { select(var(kIndex), var(kIndex), var(kIndex)); }),
            "error[HV0206]: an operand of 'if_then_else' is index, expected bool\n"
            "help: compare it, for example with '!= 0'");
  EXPECT_EQ(fault([] { apply(Op::Div, {var(kIndex), var(kInt32)}); }),
            "error[HV0207]: '/' of two integers\nhelp: use '//' for floor division, as in subscripts, or T.cast one "
            "side to a float");
}

TEST(Build, AZeroDivisorIsRefused) {
  const std::string text = "error[HV0208]: division by zero\nhelp: the divisor must not be 0";
  EXPECT_EQ(fault([] { floor_div(var(kIndex), int_imm(0)); }), text);
  EXPECT_EQ(fault([] { floor_mod(var(kInt32), int_imm(0)); }), text);
  EXPECT_EQ(fault([] { apply(Op::Div, {var(kFloat32), float_imm(0, kFloat32)}); }), "no fault");
}

TEST(Build, WeakNumbersFollowTheTypedOperand) {
  auto dtype = [](Op op, std::vector<Operand> args) { return apply_operands(op, args)->dtype; };
  EXPECT_EQ(dtype(Op::Add, {var(kF16), 1.5}), kF16);
  EXPECT_EQ(dtype(Op::Add, {int64_t{1}, var(kI8)}), kI8);
  EXPECT_EQ(dtype(Op::Add, {int64_t{1}, int64_t{2}}), kIndex);
  EXPECT_EQ(dtype(Op::Add, {int64_t{1}, 2.5}), kFloat32);
  EXPECT_EQ(dtype(Op::Exp, {int64_t{1}}), kFloat32);
  EXPECT_EQ(dtype(Op::Select, {var(kBool), int64_t{1}, var(kFloat64)}), kFloat64);
  EXPECT_EQ(fault([] { apply_operands(Op::Mul, {var(kIndex), 0.5}); }),
            "error[HV0204]: index and the float 0.5 cannot be combined by '*'\n"
            "help: write T.cast(v, \"float32\") in place of v");
  EXPECT_EQ(fault([] { apply_operands(Op::Add, {var(kI8), int64_t{128}}); }),
            "error[HV0206]: 128 is out of range, expected int8\nhelp: int8 holds -128 to 127");
}

TEST(Build, ConstantsOfAType) {
  EXPECT_TRUE(structural_equal(constant_of(int64_t{3}, kFloat32), float_imm(3, kFloat32)));
  EXPECT_TRUE(structural_equal(constant_of(0.1, kBF16), float_imm(0.10009765625, kBF16)));
  EXPECT_EQ(fault([] { constant_of(0.5, kInt32); }),
            "error[HV0206]: 0.5 is a float, expected int32\nhelp: convert with T.cast(x, dtype)");
  EXPECT_EQ(fault([] { constant_of(true, kInt32); }),
            "error[HV0206]: True is bool, expected int32\nhelp: convert with T.cast(x, dtype)");
  EXPECT_EQ(fault([] { constant_of(int64_t{-1}, kU8); }),
            "error[HV0206]: -1 is out of range, expected uint8\nhelp: uint8 holds 0 to 255; -1 wraps to 255");
}

TEST(Build, StoresRoundFloatsAndWidenIntegersOnly) {
  EXPECT_EQ(convert_for_store(var(kFloat32), kBF16)->kind, ExprKind::Cast);
  EXPECT_EQ(convert_for_store(var(kI8), kInt32)->dtype, kInt32);
  EXPECT_EQ(convert_for_store(var(kIndex), kFloat32)->dtype, kFloat32);
  Expr same = var(kFloat32);
  EXPECT_EQ(convert_for_store(same, kFloat32), same);
  EXPECT_EQ(fault([] { convert_for_store(var(kFloat32), kInt32); }),
            "error[HV0206]: the stored value is float32, expected int32\n"
            "help: write T.cast(v, \"int32\") in place of v");
  EXPECT_EQ(fault([] { convert_for_store(var(kInt32), kI8); }),
            "error[HV0206]: the stored value is int32, expected int8\n"
            "help: write T.cast(v, \"int8\") in place of v");
  EXPECT_EQ(fault([] { convert_for_store(var(kInt32), kFloat32); }),
            "error[HV0206]: the stored value is int32, expected float32\n"
            "help: write T.cast(v, \"float32\") in place of v");
}

TEST(Build, CastsOfConstantsFold) {
  EXPECT_TRUE(structural_equal(cast(int_imm(300), kU8), int_imm(44, kU8)));
  EXPECT_TRUE(structural_equal(cast(float_imm(1.0000001, kFloat64), kF16), float_imm(1, kF16)));
  EXPECT_EQ(cast(float_imm(1.5, kFloat32), kInt32)->kind, ExprKind::Cast);
  const Expr largest = int_imm(-1, {TypeCode::UInt, 64});
  EXPECT_TRUE(structural_equal(cast(largest, kFloat64), float_imm(18446744073709551616.0, kFloat64)));
  EXPECT_EQ(cast(largest, kIndex)->kind, ExprKind::Cast);  // no int64 holds it
  const int64_t tie = (int64_t{1} << 54) + (int64_t{1} << 30) + 1;  // rounded twice it would fall to 2^54
  EXPECT_TRUE(structural_equal(cast(int_imm(tie), kFloat32), float_imm(18014400656965632.0, kFloat32)));
  Expr x = var(kInt32);
  EXPECT_EQ(cast(x, kInt32), x);
}

TEST(Build, MinusOfAConstantFolds) {
  EXPECT_TRUE(structural_equal(apply(Op::Neg, {float_imm(0, kFloat32)}), float_imm(-0.0, kFloat32)));
  EXPECT_TRUE(structural_equal(apply(Op::Neg, {int_imm(-128, kI8)}), int_imm(-128, kI8)));
  EXPECT_EQ(apply(Op::Neg, {extreme_imm(kInt64, true)})->kind, ExprKind::Apply);
}

TEST(Build, Indices) {
  EXPECT_EQ(fault([] { load(array(), {var(kIndex)}); }),
            "error[HV0201]: 'A' has 2 dimensions, the subscript has 1 index\nhelp: give one index or slice for each "
            "dimension");
  EXPECT_EQ(fault([] { load(array(), {var(kIndex), var(kInt32)}); }),
            "error[HV0202]: an index of 'A' is int32, expected index\nhelp: write T.index(v)");
  EXPECT_EQ(
      fault([] { tile_load(array(), {int_imm(-1), var(kIndex)}); }),
      "error[HV0203]: index -1 of 'A' is negative\nhelp: indices count from 0; write shape - n for the n-th last");
}

TEST(Build, CeilDivIsTheQuotientRoundedUp) {
  Expr n = var(kIndex);
  EXPECT_TRUE(structural_equal(ceil_div(n, int_imm(32)), floor_div((n + int_imm(32)) - int_imm(1), int_imm(32))));
}

TEST(Operators, EveryRowBuildsUnderItsRule) {
  for (const OpRow& row : operator_rows()) {
    DType dtype = kFloat32;
    if (row.rule == OpRule::Integer) dtype = kInt32;
    if (row.rule == OpRule::Logical) dtype = kBool;
    std::vector<Expr> args(static_cast<size_t>(row.arity), var(dtype));
    if (row.rule == OpRule::Select) args[0] = var(kBool);
    const bool gives_bool = row.rule == OpRule::Compare || row.rule == OpRule::Logical;
    Expr e = apply(row.op, args);
    EXPECT_EQ(e->dtype, gives_bool ? kBool : dtype) << row.name;
    EXPECT_EQ(parse_op(row.name), row.op);
    args.pop_back();
    EXPECT_THROW(apply(row.op, args), InternalError) << row.name;
  }
  EXPECT_FALSE(parse_op("Modulo"));
}

TEST(DTypes, NamesReturn) {
  for (const std::string& name : dtype_names()) {
    ASSERT_TRUE(parse_dtype(name));
    EXPECT_EQ(to_string(*parse_dtype(name)), name);
  }
  EXPECT_EQ(parse_dtype("float"), kFloat32);
  EXPECT_EQ(parse_dtype("int"), kInt32);
  EXPECT_FALSE(parse_dtype("float128"));
  EXPECT_EQ(parse_dtype("int4")->bytes(), 1);
  EXPECT_EQ(kFloat64.bytes(), 8);
}

}  // namespace
}  // namespace helve
