// Questions about expressions that share their parts, which would take for ever if they were asked of the tree.
#include <gtest/gtest.h>

#include "helve/arith/relation.h"
#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/build.h"

namespace helve {
namespace {

constexpr int kLevels = 60;

/// f(x, x), f of that twice, and so on.
template <class F>
Expr repeated(const Expr& x, F&& f) {
  Expr e = x;
  for (int i = 0; i < kLevels; ++i) e = f(e, e);
  return e;
}

Expr doubled(const Expr& x) {
  return repeated(x, [](const Expr& a, const Expr& b) { return a + b; });
}
Expr clamped(const Expr& x) {
  return repeated(x, [](const Expr& a, const Expr& b) { return min(floor_div(a + int_imm(7), int_imm(2)), b); });
}

TEST(Sharing, SumsCollectSharedPartsOnce) {
  const Expr x = make_var("x");
  const Sum sum = sum_of(doubled(x));
  ASSERT_EQ(sum.terms.size(), 1u);
  EXPECT_EQ(sum.terms[0].coefficient, int64_t{1} << kLevels);
}

TEST(Sharing, IntervalsAndResiduesOfSharedParts) {
  const VarRef x = make_var("x");
  Facts facts;
  facts.bind(x, {0, 100});
  const Interval range = interval_of(clamped(x), facts);
  EXPECT_TRUE(range.at_least(0));
  EXPECT_TRUE(range.at_most(100));
  facts.bind_residue(x, Residue::of(4, 0));
  EXPECT_EQ(residue_of(repeated(x, [](const Expr& a, const Expr& b) { return min(a, b + int_imm(4)); }), facts),
            Residue::of(4, 0));
}

TEST(Sharing, SimplifiesSharedParts) {
  const VarRef x = make_var("x");
  EXPECT_TRUE(same_expr(simplify(doubled(x)), Expr(x) * int_imm(int64_t{1} << kLevels)));
  const Expr chosen = repeated(x, [](const Expr& a, const Expr& b) { return select(less(a, int_imm(5)), b, a); });
  EXPECT_TRUE(same_expr(simplify(chosen), Expr(x)));
}

TEST(Sharing, ComparesSeparatelyMadeParts) {
  const Expr x = make_var("x"), y = make_var("y");
  EXPECT_TRUE(same_expr(clamped(x), clamped(x)));
  EXPECT_FALSE(same_expr(clamped(x), clamped(y)));
  EXPECT_EQ(compare_structure(clamped(x), clamped(x)), 0);
  EXPECT_LT(compare_structure(clamped(x), clamped(y)), 0);
}

TEST(Sharing, ConditionsOfSharedPartsBecomeSets) {
  const VarRef x = make_var("x");
  const ExactEngine engine;
  const Expr all = repeated(less(x, int_imm(5)), [](const Expr& a, const Expr& b) { return logical_and(a, b); });
  const IntegerSet set(engine, {x}, logical_and(all, less(int_imm(4), x)));
  EXPECT_EQ(set.is_empty().verdict, Verdict::Proved);
}

TEST(Sharing, ChainsKeepTheirMeaning) {
  const VarRef x = make_var("x");
  Expr all, none;
  for (int k = 0; k < 64; ++k) {
    const Expr each = less(x, int_imm(100 + k));
    all = all ? logical_and(all, each) : each;
  }
  none = apply(Op::Not, {all});
  EXPECT_TRUE(same_expr(simplify(all), less(x, int_imm(100))));  // the others follow
  EXPECT_TRUE(same_expr(simplify(none), simplify(apply(Op::Le, {int_imm(100), Expr(x)}))));
}

}  // namespace
}  // namespace helve
