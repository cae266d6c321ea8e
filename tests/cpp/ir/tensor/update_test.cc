// What stores make of old values, and the operations that combine them without order.
#include "helve/ir/tensor/update.h"

#include <gtest/gtest.h>

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

}  // namespace
}  // namespace helve
