// What stores make of old values, and the operations that combine them without order.
#include "helve/ir/tensor/update.h"

#include <gtest/gtest.h>

#include "helve/ir/expr/equal.h"
#include "helve/ir/tensor/equal.h"
#include "helve/support/diagnostic.h"

namespace helve {
namespace {

class Updates : public ::testing::Test {
 protected:
  BufferRef s_ = make_buffer("s", kFloat32, MemoryScope::Shared, {int_imm(4)});
  BufferRef a_ = make_buffer("A", kFloat32, MemoryScope::Param, {int_imm(4)});
  VarRef i_ = make_var("i");
  Expr x_ = load(a_, {Expr(i_)});
  Expr old_ = load(s_, {Expr(i_)});
  Expr other_ = load(s_, {Expr(i_) + int_imm(1)});

  Update of(const Expr& value, std::vector<Expr> conditions = {}) const {
    return {s_.get(), {Expr(i_)}, value, std::move(conditions)};
  }
};

TEST_F(Updates, ReadTheElementThatTheyStore) {
  EXPECT_TRUE(reads_old(of(old_ + x_)));
  EXPECT_TRUE(reads_old(of(x_, {apply(Op::Gt, {x_, old_})})));
  EXPECT_FALSE(reads_old(of(x_)));
  EXPECT_FALSE(reads_old(of(other_ + x_)));
  EXPECT_FALSE(reads_old(of(x_, {apply(Op::Gt, {x_, other_})})));
}

TEST_F(Updates, CombineTheOldValueByOneOperator) {
  EXPECT_EQ(combination(of(old_ + x_)), Op::Add);
  EXPECT_EQ(combination(of(apply(Op::Sub, {apply(Op::Add, {x_, old_}), x_}))), Op::Add);
  EXPECT_EQ(combination(of(old_ * x_)), Op::Mul);
  EXPECT_EQ(combination(of(apply(Op::Min, {x_, old_}))), Op::Min);
  EXPECT_EQ(combination(of(apply(Op::Sub, {x_, old_}))), std::nullopt);  // each changes the sign of those before
  EXPECT_EQ(combination(of(apply(Op::Add, {old_ * x_, x_}))), std::nullopt);
  EXPECT_EQ(combination(of(old_ + old_)), std::nullopt);
  EXPECT_EQ(combination(of(old_ + other_)), std::nullopt);
  EXPECT_EQ(combination(of(old_)), std::nullopt);
}

TEST_F(Updates, AreAMaximumWhereOnlyTheGreaterIsStored) {
  for (const Op op : {Op::Gt, Op::Ge}) {
    EXPECT_EQ(combination(of(x_, {apply(op, {x_, old_})})), Op::Max);
    EXPECT_EQ(combination(of(x_, {apply(op, {old_, x_})})), Op::Min);
  }
  for (const Op op : {Op::Lt, Op::Le}) {
    EXPECT_EQ(combination(of(x_, {apply(op, {x_, old_})})), Op::Min);
    EXPECT_EQ(combination(of(x_, {apply(op, {old_, x_})})), Op::Max);
  }
  const Expr some = apply(Op::Gt, {x_, float_imm(0, kFloat32)});
  EXPECT_EQ(combination(of(x_, {apply(Op::And, {some, apply(Op::Gt, {x_, old_})})})), Op::Max);
  EXPECT_EQ(combination(of(x_, {some})), std::nullopt);
  EXPECT_EQ(combination(of(other_, {apply(Op::Gt, {x_, old_})})), std::nullopt);
  EXPECT_EQ(combination(of(x_ + x_, {apply(Op::Gt, {x_, old_})})), std::nullopt);
  EXPECT_EQ(combination(of(apply(Op::Select, {apply(Op::Lt, {x_, old_}), x_, old_}))), Op::Min);
  EXPECT_EQ(combination(of(apply(Op::Select, {apply(Op::Lt, {x_, old_}), old_, x_}))), std::nullopt);
}

TEST_F(Updates, HaveAnAtomicFormWhereTheMemoryHas) {
  EXPECT_EQ(atomic_text(of(old_ + x_)), "T.atomic_add(s[i], ...)");
  EXPECT_EQ(atomic_text(of(apply(Op::Max, {old_, x_}))), "T.atomic_max(s[i], ...)");
  EXPECT_EQ(atomic_text(of(old_ * x_)), "");
  const BufferRef own = make_buffer("own", kFloat32, MemoryScope::Local, {int_imm(4)});
  const Update update = {own.get(), {Expr(i_)}, load(own, {Expr(i_)}) + x_};
  EXPECT_EQ(atomic_text(update), "");
  EXPECT_EQ(private_remedy(update),
            "use T.atomic_add to shared memory, T.reduce_sum of a buffer with the terms, or a T.serial loop");
}

const Store& as_store(const Stmt& s) { return *as<Store>(s); }

TEST_F(Updates, AreStoresOfWhatTheirOperatorMakes) {
  const std::pair<StoreMode, Op> operators[] = {
      {StoreMode::Add, Op::Add}, {StoreMode::Mul, Op::Mul}, {StoreMode::Max, Op::Max}, {StoreMode::Min, Op::Min}};
  for (const auto& [mode, op] : operators) {
    const Stmt s = store(s_, {Expr(i_)}, x_, {}, mode);
    EXPECT_TRUE(as_store(s).is_update());
    EXPECT_FALSE(as_store(s).is_atomic());
    EXPECT_TRUE(structural_equal(stored_value(as_store(s)), apply(op, {old_, x_})));
    EXPECT_EQ(combination(update_of(as_store(s))), op);
    EXPECT_TRUE(reads_old(update_of(as_store(s))));
    EXPECT_FALSE(structural_equal(s, store(s_, {Expr(i_)}, apply(op, {old_, x_}))));
  }
  for (int mode = 0; mode < kStoreModes; ++mode) {
    const StoreMode each = static_cast<StoreMode>(mode);
    EXPECT_EQ(is_atomic(each) + is_update(each) + (each == StoreMode::Write), 1) << to_string(each);
  }
}

TEST_F(Updates, RoundOnceToTheTypeOfTheElement) {
  const DType float16{TypeCode::Float, 16};
  const BufferRef half = make_buffer("h", float16, MemoryScope::Shared, {int_imm(4)});
  const Expr old = load(half, {Expr(i_)});
  const Stmt s = store(half, {Expr(i_)}, x_, {}, StoreMode::Add);
  EXPECT_EQ(as_store(s).value->dtype, kFloat32);
  EXPECT_TRUE(structural_equal(stored_value(as_store(s)), cast(cast(old, kFloat32) + x_, float16)));
  EXPECT_EQ(as_store(store(half, {Expr(i_)}, x_)).value->dtype, float16);
}

TEST_F(Updates, TakeWeakNumbersInTheTypeOfTheElement) {
  EXPECT_TRUE(
      structural_equal(as_store(update(s_, {Expr(i_)}, int64_t{2}, StoreMode::Mul)).value, float_imm(2, kFloat32)));
  const BufferRef small = make_buffer("n", DType{TypeCode::Int, 8}, MemoryScope::Shared, {int_imm(4)});
  EXPECT_EQ(as_store(update(small, {Expr(i_)}, int64_t{2}, StoreMode::Max)).value->dtype, small->dtype);
  EXPECT_EQ(as_store(store(small, {Expr(i_)}, Expr(i_), {}, StoreMode::Add)).value->dtype, small->dtype);
}

TEST_F(Updates, TakeWhatAStoreOfTheirValueTakes) {
  const auto code_of = [&](const BufferRef& buffer, const Operand& value, StoreMode mode) {
    try {
      update(buffer, {Expr(i_)}, value, mode);
    } catch (const UserError& error) {
      return std::string(diagnostic_row(error.diagnostic().code).name);
    }
    return std::string();
  };
  const BufferRef flags = make_buffer("f", kBool, MemoryScope::Shared, {int_imm(4)});
  const BufferRef small = make_buffer("n", DType{TypeCode::Int, 8}, MemoryScope::Shared, {int_imm(4)});
  EXPECT_EQ(code_of(flags, Expr(bool_imm(true)), StoreMode::Max), "WrongType");
  EXPECT_EQ(code_of(small, int_imm(1, kInt32), StoreMode::Add), "WrongType");
  EXPECT_EQ(code_of(small, 0.5, StoreMode::Add), "WrongType");
  EXPECT_EQ(code_of(s_, load(small, {Expr(i_)}), StoreMode::Mul), "WrongType");
  const BufferRef half = make_buffer("h", DType{TypeCode::Float, 16}, MemoryScope::Shared, {int_imm(4)});
  const BufferRef brain = make_buffer("b", *parse_dtype("bfloat16"), MemoryScope::Shared, {int_imm(4)});
  EXPECT_EQ(code_of(half, load(brain, {Expr(i_)}), StoreMode::Add), "MixedTypes");
  EXPECT_EQ(code_of(s_, x_, StoreMode::Min), "");
}

}  // namespace
}  // namespace helve
