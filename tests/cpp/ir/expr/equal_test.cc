// Structural equality, hash, traversal.
#include "helve/ir/expr/equal.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/visit.h"

namespace helve {
namespace {

const VarRef i = make_var("i"), j = make_var("j");

/// A random expression, built anew from the seed each time.
Expr random_expr(std::mt19937& random, int depth) {
  if (depth == 0) {
    switch (random() % 3) {
      case 0: return Expr(i);
      case 1: return Expr(j);
      default: return int_imm(static_cast<int64_t>(random() % 4));
    }
  }
  static const Op ops[] = {Op::Add, Op::Sub, Op::Mul, Op::Min, Op::Max, Op::BitXor};
  const Op op = ops[random() % 6];
  Expr left = random_expr(random, depth - 1);
  return apply(op, {left, random_expr(random, depth - 1)});
}

TEST(ExprEqual, EqualByFieldsNotByIdentityOfNodes) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 first(seed), second(seed), other(seed + 1000);
    Expr a = random_expr(first, 4), b = random_expr(second, 4), c = random_expr(other, 4);
    EXPECT_NE(a, b);
    EXPECT_TRUE(structural_equal(a, b));
    EXPECT_EQ(structural_hash(a), structural_hash(b));
    EXPECT_FALSE(structural_equal(a, c));
  }
}

TEST(ExprEqual, HashesOfSmallExpressionsDiffer) {
  std::set<uint64_t> hashes;
  size_t count = 0;
  for (int64_t value = -20; value < 20; ++value) {
    for (const char* dtype : {"index", "int32", "int64"}) {
      hashes.insert(structural_hash(int_imm(value, *parse_dtype(dtype))));
      hashes.insert(structural_hash(cast(Expr(i), kInt32) + int_imm(value, kInt32)));
      count += 1;
    }
  }
  EXPECT_EQ(hashes.size(), count + 40);
  EXPECT_NE(structural_hash(Expr(i) - Expr(j)), structural_hash(Expr(j) - Expr(i)));
}

TEST(ExprEqual, TypesAndIdentityCountNamesAndSpansDoNot) {
  EXPECT_FALSE(structural_equal(int_imm(1), int_imm(1, kInt32)));
  EXPECT_FALSE(structural_equal(float_imm(0.0, kFloat32), float_imm(-0.0, kFloat32)));
  EXPECT_TRUE(structural_equal(float_imm(std::nan(""), kFloat32), float_imm(std::nan("1"), kFloat32)));
  EXPECT_TRUE(structural_equal(float_imm(std::nan(""), kFloat32), float_imm(-std::nan(""), kFloat32)));
  EXPECT_FALSE(structural_equal(Expr(i), Expr(make_var("i"))));
  const Span span{intern_file("f.py"), 1, 2, 1, 3};
  EXPECT_TRUE(structural_equal(int_imm(1), int_imm(1, kIndex, span)));
  EXPECT_FALSE(structural_equal(cast(Expr(i), kInt32), cast(Expr(i), kInt64)));
}

TEST(ExprEqual, DefinedVariablesAreEqualByPlace) {
  Equality equality;
  equality.define(i.get(), j.get());
  EXPECT_TRUE(equality.equal(Expr(i) + int_imm(1), Expr(j) + int_imm(1)));
  EXPECT_FALSE(equality.equal(Expr(i), Expr(i)));
  EXPECT_FALSE(equality.equal(Expr(j), Expr(i)));
}

TEST(ExprEqual, ThePathNamesTheFirstDifference) {
  Equality equality;
  EXPECT_FALSE(equality.equal(Expr(i) + (Expr(j) * int_imm(2)), Expr(i) + (Expr(j) * int_imm(3))));
  EXPECT_EQ(equality.path(), "args[1].args[1].value");
}

TEST(ExprVisit, ParentsComeFirstAndOperandsInOrder) {
  Expr e = (Expr(i) + int_imm(1)) * Expr(j);
  std::vector<const ExprNode*> seen;
  walk(e, [&](const Expr& node) { seen.push_back(node.get()); });
  ASSERT_EQ(seen.size(), 5u);
  EXPECT_EQ(seen[0], e.get());
  EXPECT_EQ(seen[2], i.get());
  EXPECT_EQ(seen[4], j.get());
}

TEST(ExprVisit, AnUnchangedRewriteIsTheSameObject) {
  for (unsigned seed = 0; seed < 50; ++seed) {
    std::mt19937 random(seed);
    Expr e = random_expr(random, 5);
    EXPECT_EQ(rewrite(e, [](const Expr& node) { return node; }), e);
    EXPECT_EQ(substitute(e, {{make_var("other").get(), int_imm(1)}}), e);
  }
}

TEST(ExprVisit, SubstitutionReachesEveryPlaceAndSharesTheRest) {
  Expr kept = Expr(j) * int_imm(2);
  Expr e = min(Expr(i) + int_imm(1), kept);
  Expr replaced = substitute(e, {{i.get(), Expr(j)}});
  EXPECT_TRUE(structural_equal(replaced, min(Expr(j) + int_imm(1), Expr(j) * int_imm(2))));
  EXPECT_EQ(as<Apply>(replaced)->args[1], kept);
  EXPECT_TRUE(mentions(e, i.get()));
  EXPECT_FALSE(mentions(replaced, i.get()));
}

}  // namespace
}  // namespace helve
