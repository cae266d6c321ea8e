// Facts and long conditions: what many inequalities say together, and what stays out of each other's sight.
#include "helve/arith/facts.h"

#include <gtest/gtest.h>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/expr/visit.h"

namespace helve {
namespace {

Expr c(int64_t value) { return int_imm(value); }

TEST(Facts, OfSumsThatDifferByAConstantTheLeastStays) {
  const Expr i = Expr(make_var("i")), n = Expr(make_var("n"));
  Facts facts;
  for (const int64_t k : {5, 9, 2, 7, 2}) facts.assume_normal(less(i * n + c(k), n));
  ASSERT_EQ(facts.inequalities().size(), 1u);
  EXPECT_TRUE(can_prove(less(i * n + c(9), n), facts));
  EXPECT_FALSE(can_prove(less(i * n + c(10), n), facts));
}

TEST(Facts, ACopyKnowsNothingOfWhatTheOtherLearns) {
  const VarRef i = make_var("i"), n = make_var("n"), m = make_var("m");
  const Expr tight = less(Expr(i) + c(4), Expr(n)), other = less(Expr(i), Expr(m));
  Facts outer;
  outer.assume(less(Expr(i), Expr(n)));
  Facts first = outer, second = outer;
  first.assume(tight);
  second.assume(other);
  EXPECT_TRUE(can_prove(tight, first));
  EXPECT_TRUE(can_prove(other, second));
  EXPECT_FALSE(can_prove(other, first));
  EXPECT_FALSE(can_prove(tight, second));
  EXPECT_FALSE(can_prove(tight, outer));
  EXPECT_EQ(outer.known(other), std::nullopt);
  EXPECT_EQ(second.known(other), true);
}

TEST(Facts, AnEquationAndItsDenialAreOneQuestion) {
  const Expr d = Expr(make_var("d", kInt32));
  Facts facts;
  facts.assume_normal(apply(Op::Eq, {d, int_imm(3, kInt32)}));
  EXPECT_EQ(facts.known(apply(Op::Eq, {d, int_imm(3, kInt32)})), true);
  EXPECT_EQ(facts.known(apply(Op::Ne, {d, int_imm(3, kInt32)})), false);
  EXPECT_EQ(facts.known(apply(Op::Ne, {d, int_imm(4, kInt32)})), std::nullopt);
}

/// x0 < x1 < ... < x5 < 10: an end that one inequality narrows narrows the next one's variable, in whatever order they
/// were learnt, and through a product where its factors have signs.
TEST(Facts, RangesNarrowThroughInequalities) {
  for (const bool forward : {true, false}) {
    std::vector<VarRef> x;
    for (int k = 0; k < 6; ++k) x.push_back(make_var("x" + std::to_string(k)));
    const VarRef k = make_var("k"), y = make_var("y");
    Facts facts;
    facts.assume(less(Expr(y), Expr(x[0]) * Expr(k)));
    for (int at = 0; at < 5; ++at) {
      const int i = forward ? at : 4 - at;
      facts.assume(less(Expr(x[i]), Expr(x[i + 1])));
    }
    facts.bind(x[0], {0, std::nullopt});
    facts.bind(k, {0, 3});
    facts.bind(x[5], {std::nullopt, 9});
    EXPECT_EQ(facts.range_of(x[0].get()), (Interval{0, 4}));
    EXPECT_EQ(facts.range_of(x[3].get()), (Interval{3, 7}));
    EXPECT_EQ(facts.range_of(y.get()).high, 11);
  }
}

TEST(Facts, LongConditionsKeepTheirOrderAndStayShallow) {
  const DType int32{TypeCode::Int, 32};
  const Expr d = Expr(make_var("d", int32)), n = Expr(make_var("n"));
  std::vector<Expr> parts, kept;
  for (int k = 0; k < 900; ++k) {
    parts.push_back(apply(Op::Ne, {d, int_imm(k * 7 % 1000, int32)}));
    kept.push_back(parts.back());
    if (k % 3 == 0) parts.push_back(parts[parts.size() / 2]);  // known already
    if (k % 100 == 0) parts.push_back(less(n, n + c(1)));
  }
  for (const Op op : {Op::And, Op::Or}) {
    std::vector<Expr> given;
    for (const Expr& part : parts) given.push_back(op == Op::And ? part : simplify(apply(Op::Not, {part})));
    if (op == Op::Or) std::erase_if(given, [](const Expr& e) { return e->kind == ExprKind::IntImm; });
    const Expr normal = simplify(chain(op, given));
    const std::vector<Expr> operands = operands_of_chain(normal, op);
    ASSERT_EQ(operands.size(), kept.size());
    for (size_t k = 0; k < kept.size(); ++k)
      EXPECT_TRUE(same_expr(operands[k], op == Op::And ? kept[k] : simplify(apply(Op::Not, {kept[k]}))));
    EXPECT_LT(normal->depth(), 40);
    EXPECT_EQ(simplify(normal), normal);
    const Expr denied = simplify(apply(Op::Not, {normal}));
    EXPECT_LT(denied->depth(), 40);
    EXPECT_TRUE(same_expr(simplify(apply(Op::Not, {denied})), normal));
  }
}

}  // namespace
}  // namespace helve
