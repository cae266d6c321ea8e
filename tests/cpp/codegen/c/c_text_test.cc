// What all C texts share: names, constants, element offsets, the table of operators.
#include <gtest/gtest.h>

#include <limits>

#include "helve/analysis/element_address.h"
#include "helve/arith/simplify.h"
#include "helve/codegen/c/c_emitter.h"
#include "helve/codegen/c/c_types.h"
#include "helve/support/diagnostic.h"

namespace helve::c {
namespace {

VarRef var(const char* name) { return make_var(name); }

TEST(CNames, KeepsHintsThatAreFree) {
  CNames names;
  VarRef a = var("a"), b = var("a"), keyword = var("while"), builtin = var("expf");
  VarRef odd = var("__x__y"), empty = var("_");
  EXPECT_EQ(names.define(a.get(), a->name), "a");
  EXPECT_EQ(names.define(b.get(), b->name), "a_1");
  EXPECT_EQ(names.define(keyword.get(), keyword->name), "while_1");
  EXPECT_EQ(names.define(builtin.get(), builtin->name), "expf_1");
  EXPECT_EQ(names.define(odd.get(), odd->name), "x_y");
  EXPECT_EQ(names.define(empty.get(), empty->name), "v");
  EXPECT_EQ(names.fresh("helve_load"), "vhelve_load");
  EXPECT_EQ(names.fresh("\xc3\xa4nderung"), "nderung");
  EXPECT_EQ(names.of(b.get(), "a"), "a_1");
}

TEST(CNames, EndWithTheirScope) {
  CNames names;
  VarRef i = var("i"), j = var("i");
  names.define(i.get(), "i");
  {
    CNames::Scope inner(names);
    EXPECT_EQ(names.define(j.get(), "i"), "i_1");
    EXPECT_EQ(names.define(i.get(), "i"), "i_2");  // defined again
    EXPECT_EQ(names.of(i.get(), "i"), "i_2");
  }
  EXPECT_EQ(names.of(i.get(), "i"), "i");
  EXPECT_FALSE(names.known(j.get()));
  EXPECT_THROW(names.of(j.get(), "i"), InternalError);
  CNames::Scope next(names);
  EXPECT_EQ(names.define(j.get(), "i"), "i_1");
}

TEST(CTypes, ConstantsCarryTheirType) {
  EXPECT_EQ(float_text(1.0, kFloat32), "1.0f");
  EXPECT_EQ(float_text(0.1f, kFloat32), "0.1f");
  EXPECT_EQ(float_text(1e30, kFloat64), "1e+30");
  EXPECT_EQ(float_text(-std::numeric_limits<double>::infinity(), kFloat32), "-helve_infinity()");
  EXPECT_EQ(integer_text(3, kIndex), "3");
  EXPECT_EQ(integer_text(int64_t{1} << 40, kIndex, true), "1099511627776ll");
  EXPECT_EQ(integer_text(-5, kInt32), "-5");
  EXPECT_EQ(integer_text(std::numeric_limits<int64_t>::min(), kInt64), "(-9223372036854775807ll - 1)");
  EXPECT_EQ(integer_text(std::numeric_limits<int32_t>::min(), kInt32), "(-2147483647 - 1)");
  EXPECT_EQ(integer_text(-1, {TypeCode::UInt, 64}), "18446744073709551615ull");
  EXPECT_EQ(integer_text(7, {TypeCode::UInt, 32}), "7u");
  EXPECT_EQ(integer_text(1, kBool), "true");
  EXPECT_EQ(memory_type({TypeCode::BFloat, 16}), "helve_bfloat16");
  EXPECT_EQ(value_type({TypeCode::BFloat, 16}), "float");
  EXPECT_THROW(memory_type({TypeCode::Int, 4}), UserError);
}

TEST(COperators, HaveAFormWhereTheTypeRulesHaveTheOperator) {
  for (const OpRow& row : operator_rows()) {
    const bool real = form_of(row.op, kFloat32).kind != FormKind::None;
    const bool whole = form_of(row.op, kInt32).kind != FormKind::None;
    EXPECT_EQ(real, form_of(row.op, kFloat64).kind != FormKind::None) << row.name;
    EXPECT_EQ(whole, form_of(row.op, kIndex).kind != FormKind::None) << row.name;
    switch (row.rule) {
      case OpRule::Float: EXPECT_TRUE(real && !whole) << row.name; break;
      case OpRule::Integer: EXPECT_TRUE(whole && !real) << row.name; break;
      case OpRule::Logical: EXPECT_NE(form_of(row.op, kBool).kind, FormKind::None) << row.name; break;
      case OpRule::Arithmetic:
      case OpRule::Compare:
      case OpRule::Select:
      case OpRule::Number: EXPECT_TRUE(real && whole) << row.name; break;
    }
    const Form form = form_of(row.op, kFloat32);
    if (form.kind == FormKind::Infix) {
      EXPECT_GT(precedence_of(form.text), 0) << row.name;
    }
  }
  EXPECT_THROW(precedence_of("**"), InternalError);
}

TEST(ElementOffset, IsANormalSumUnderConstantStrides) {
  VarRef i = var("i"), j = var("j"), n = var("n");
  BufferRef rows = make_buffer("A", kFloat32, MemoryScope::Param, {int_imm(8), int_imm(16)});
  const Expr offset = element_offset(*rows, {Expr(i) + int_imm(1), Expr(j) + int_imm(2)});
  EXPECT_EQ(sum_of(offset).terms.size(), 2u);
  EXPECT_EQ(sum_of(offset).constant, 18);
  EXPECT_EQ(sum_of(element_offset(*rows, {Expr(i), Expr(j)}, 1)).terms.size(), 1u);  // the first dimension left out
  BufferRef dynamic = make_buffer("B", kFloat32, MemoryScope::Param, {int_imm(8), Expr(n)});
  EXPECT_EQ(constant_value(element_offset(*dynamic, {int_imm(0), int_imm(0)})), 0);
  const std::vector<Expr> shape = {int_imm(8), int_imm(4)}, strides = {int_imm(5), int_imm(2)};
  BufferRef strided = make_buffer("C", kFloat32, MemoryScope::Param, shape, {}, strides);
  EXPECT_EQ(constant_value(element_offset(*strided, {int_imm(3), int_imm(1)})), 17);
}

}  // namespace
}  // namespace helve::c
