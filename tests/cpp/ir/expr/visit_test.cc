// Walks over expressions that share their parts cost what the parts cost, not what the tree would.
#include "helve/ir/expr/visit.h"

#include <gtest/gtest.h>

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/equal.h"
#include "helve/ir/expr/text.h"
#include "helve/support/diagnostic.h"

namespace helve {
namespace {

constexpr int kLevels = 60;

/// x + x, that + that, and so on: 2^kLevels occurrences of x.
Expr doubled(const Expr& x, int levels = kLevels) {
  Expr e = x;
  for (int i = 0; i < levels; ++i) e = e + e;
  return e;
}

TEST(Visit, MeasuresDepthAndOccurrences) {
  const Expr x = make_var("x");
  EXPECT_EQ(x->depth(), 1);
  EXPECT_EQ(x->occurrences(), 1u);
  const Expr e = (x + x) * int_imm(3);
  EXPECT_EQ(e->depth(), 3);
  EXPECT_EQ(e->occurrences(), 5u);
  EXPECT_EQ(doubled(x)->depth(), kLevels + 1);
  EXPECT_EQ(doubled(x)->occurrences(), ExprNode::kMaxOccurrences);
}

TEST(Visit, MeasuresWhatMutatorsMake) {
  const VarRef x = make_var("x"), y = make_var("y");
  const Expr e = substitute(Expr(x) + int_imm(1), {{x.get(), Expr(y) * Expr(y)}});
  EXPECT_EQ(e->depth(), 3);
  EXPECT_EQ(e->occurrences(), 5u);
}

TEST(Visit, WalksSharedPartsOnce) {
  int visits = 0;
  walk(doubled(make_var("x")), [&](const Expr&) { ++visits; });
  EXPECT_LE(visits, kLevels + 2 * static_cast<int>(kFewOccurrences));
}

TEST(Visit, RewritesSharedPartsOnce) {
  const VarRef x = make_var("x"), y = make_var("y");
  int visits = 0;
  const Expr e = rewrite(doubled(x), [&](const Expr& node) {
    ++visits;
    return node.get() == x.get() ? Expr(y) : node;
  });
  EXPECT_LE(visits, kLevels + 2 * static_cast<int>(kFewOccurrences));
  EXPECT_TRUE(structural_equal(e, doubled(y)));
  EXPECT_TRUE(mentions(e, y.get()));
  EXPECT_FALSE(mentions(e, x.get()));
}

TEST(Visit, ComparesAndHashesSharedPartsOnce) {
  const Expr x = make_var("x");
  EXPECT_TRUE(structural_equal(doubled(x), doubled(x)));
  EXPECT_FALSE(structural_equal(doubled(x), doubled(x, kLevels - 1)));
  EXPECT_EQ(structural_hash(doubled(x)), structural_hash(doubled(x)));
}

TEST(Visit, HashesAlikeHoweverPartsAreShared) {
  const Expr x = make_var("x");
  const Expr one = doubled(x, 8), two = doubled(x, 8);
  EXPECT_EQ(structural_hash(one + one), structural_hash(one + two));
  EXPECT_TRUE(structural_equal(one + one, one + two));
}

TEST(Visit, LeavesLargeValuesBehindTheirNames) {
  const VarRef x = make_var("x");
  VarRef before = x;
  Substitution values;
  int added = 0;
  for (int i = 0; i < 100; ++i) {
    const VarRef var = make_var("v");
    added += add_value(values, var, Expr(before) + Expr(before));
    before = var;
  }
  EXPECT_LT(added, 100);
  EXPECT_GT(added, 50);
  for (const auto& [var, value] : values) EXPECT_LE(value->occurrences(), kLargestValue);
}

TEST(Visit, RefusesWhatIsTooDeep) {
  Expr e = make_var("x");
  for (int i = 1; i < kExprDepthLimit; ++i) e = apply(Op::Abs, {e});
  EXPECT_EQ(e->depth(), kExprDepthLimit);
  try {
    apply(Op::Abs, {e});
    FAIL() << "nothing refuses the expression";
  } catch (const UserError& error) {
    EXPECT_EQ(error.diagnostic().code, Code::NestingDepth);
  }
}

TEST(Visit, RefusesToWriteWhatIsTooLarge) {
  const Expr x = make_var("x");
  EXPECT_EQ(to_text(doubled(x, 2)), "x + x + (x + x)");
  EXPECT_THROW(to_text(doubled(x)), UserError);
  EXPECT_EQ(brief_text(doubled(x)), "...");
}

}  // namespace
}  // namespace helve
