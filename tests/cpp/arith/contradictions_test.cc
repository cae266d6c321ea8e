// Contradictions next to enumeration, and parts of conditions that are not exact.
#include "helve/arith/contradictions.h"

#include <gtest/gtest.h>

#include "enumerated.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/visit.h"

namespace helve::testing {
namespace {

const VarRef a = make_var("a"), b = make_var("b"), c = make_var("c");

TEST(Contradictions, AreFoundOnlyWhereNoPointIsLeft) {
  const ExactEngine engine;
  const std::vector<VarRef> vars = {a, b, c};
  Contradictions contradictions(engine);
  int found = 0, wrong = 0, possible = 0;
  for (uint32_t seed = 0; seed < (long_tests() ? 5000u : 400u); ++seed) {
    Random random(seed, vars);
    std::vector<Expr> all = {box(vars, kSmall)};
    for (int64_t n = random.number(1, 4); n > 0; --n) all.push_back(random.condition(1));
    bool holds = false;
    const auto look = [&](const Assignment& at) {
      bool here = true;
      for (const Expr& condition : all) here = here && *evaluate(condition, at) != 0;
      holds |= here;
    };
    each_point(vars, look, kSmall);
    const bool contradict = contradictions.found(all, {});
    found += contradict;
    possible += !holds;
    wrong += contradict && holds;
  }
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(found, possible * 9 / 10) << "of " << possible;
}

/// The conditions with one operator, number or variable changed, so that they are nearly those of before.
std::vector<Expr> changed(std::vector<Expr> all, Random& random, const std::vector<VarRef>& vars) {
  Expr& one = all[static_cast<size_t>(random.number(0, static_cast<int64_t>(all.size()) - 1))];
  const VarRef& from = vars[static_cast<size_t>(random.number(0, 2))];
  switch (random.number(0, 3)) {
    case 0: one = substitute(one, {{from.get(), Expr(from) + int_imm(1)}}); break;
    case 1: one = substitute(one, {{from.get(), Expr(vars[static_cast<size_t>(random.number(0, 2))])}}); break;
    case 2: one = apply(Op::Not, {one}); break;
    default: std::swap(one, all[0]); break;
  }
  return all;
}

TEST(Contradictions, WhatIsRememberedIsTrueOfThatQuestionOnly) {
  const ExactEngine engine;
  const std::vector<VarRef> vars = {a, b, c};
  Contradictions remembers(engine);
  int found = 0, not_found = 0;
  for (uint32_t seed = 0; seed < (long_tests() ? 2000u : 150u); ++seed) {
    Random random(seed, vars);
    std::vector<Expr> all = {box(vars, kSmall)};
    for (int64_t n = random.number(1, 4); n > 0; --n) all.push_back(random.condition(1));
    for (int step = 0; step < 6; ++step) {
      // The same question under other names, with other variables fixed, and as a question that is nearly the same.
      Substitution names;
      std::unordered_set<const Var*> fixed;
      std::vector<Expr> renamed;
      const bool fresh = random.number(0, 1) == 0;
      for (const VarRef& var : vars) names[var.get()] = fresh ? Expr(make_var("x")) : Expr(var);
      if (random.number(0, 2) == 0) fixed.insert(as<Var>(names.at(vars[static_cast<size_t>(step) % 3].get())));
      for (const Expr& condition : all) renamed.push_back(substitute(condition, names));
      const bool answer = remembers.found(renamed, fixed);
      EXPECT_EQ(answer, Contradictions(engine).found(renamed, fixed)) << "seed " << seed << ", step " << step;
      (answer ? found : not_found) += 1;
      all = changed(all, random, vars);
    }
  }
  EXPECT_GT(found, 50);
  EXPECT_GT(not_found, 50);
}

TEST(Contradictions, ConvertedVariablesAreNotAnyOthers) {
  const ExactEngine engine;
  Contradictions contradictions(engine);
  const Expr converted = cast(cast(floor_mod(Expr(a), int_imm(4)), kInt32), kIndex);
  const Expr high = less(int_imm(0), converted - int_imm(2));
  EXPECT_FALSE(contradictions.found({high, less(floor_mod(Expr(b), int_imm(4)), int_imm(1))}, {}));
  EXPECT_TRUE(contradictions.found({high, less(floor_mod(Expr(a), int_imm(4)), int_imm(1))}, {}));
  EXPECT_FALSE(contradictions.found({high, less(floor_mod(Expr(c), int_imm(4)), int_imm(1))}, {}));
}

TEST(Contradictions, TwoBoundsOfOneSumAreCompared) {
  const ExactEngine nothing(1);  // isl may not be asked
  Contradictions contradictions(nothing);
  const Expr sum = Expr(a) * int_imm(2) - Expr(b);
  EXPECT_TRUE(contradictions.found({less(sum, int_imm(3)), less(int_imm(2), sum)}, {}));
  EXPECT_FALSE(contradictions.found({less(sum, int_imm(3)), le(int_imm(2), sum)}, {}));
  EXPECT_TRUE(contradictions.found({eq(Expr(a), Expr(b)), less(Expr(b), Expr(a))}, {}));
  EXPECT_TRUE(contradictions.found({both(le(Expr(a), int_imm(4)), less(int_imm(4), Expr(a)))}, {}));
  EXPECT_FALSE(contradictions.found({eq(Expr(a), Expr(b)), le(Expr(b), Expr(a))}, {}));
  const Expr apart = apply(Op::Ne, {Expr(b), Expr(a)});
  const auto excluded = [&](const std::vector<Expr>& all, const std::vector<Expr>& more = {}) {
    return contradictions.excluded(contradictions.known(all), contradictions.known(more));
  };
  EXPECT_TRUE(excluded({eq(Expr(a), Expr(b)), apart}));
  EXPECT_TRUE(excluded({eq(Expr(a), Expr(b))}, {apart}));
  EXPECT_TRUE(excluded({apart, both(le(Expr(a), Expr(b)), le(Expr(b), Expr(a)))}));
  EXPECT_FALSE(excluded({le(Expr(a), Expr(b)), apart}));
  EXPECT_FALSE(excluded({eq(Expr(a), Expr(c)), apart}));
  EXPECT_TRUE(excluded({apply(Op::Ne, {Expr(a), Expr(a)})}));
}

TEST(Contradictions, ASumOfMultiplesIsAMultiple) {
  Contradictions contradictions{ExactEngine(1)};  // which decides nothing
  const Expr sum = Expr(a) * int_imm(96) + Expr(b) * int_imm(-6);
  for (int64_t number = -20; number <= 20; ++number) {
    const bool multiple = number % 6 == 0;
    EXPECT_EQ(contradictions.found({eq(sum, int_imm(number))}, {}), !multiple) << number;
    EXPECT_EQ(contradictions.found({le(int_imm(number), sum), less(sum, int_imm(number + 1))}, {}), !multiple);
    const Expr is_other = apply(Op::Ne, {sum, int_imm(number)});
    EXPECT_FALSE(contradictions.found({is_other}, {}));
    EXPECT_EQ(contradictions.found({is_other, less(int_imm(number - 6), sum), less(sum, int_imm(number + 6))}, {}),
              multiple);
    EXPECT_FALSE(contradictions.found({less(int_imm(number - 6), sum), less(sum, int_imm(number + 1))}, {}));
  }
}

TEST(Contradictions, OnlyPartsWithALaterConditionAreAsked) {
  const ExactEngine engine;
  Contradictions contradictions(engine);
  const Expr positive = both(less(int_imm(0), Expr(a) + Expr(c)), less(int_imm(0), Expr(a) - Expr(c)));
  const Expr below_one = less(Expr(a), int_imm(1)), other = less(Expr(b), int_imm(3));
  const auto found = [&](const std::vector<Expr>& all, const std::vector<Expr>& more) {
    return contradictions.found(contradictions.known(all), contradictions.known(more), {});
  };
  EXPECT_TRUE(contradictions.found({positive, below_one}, {}));
  EXPECT_TRUE(found({positive, other}, {below_one}));
  EXPECT_FALSE(found({positive, below_one}, {other}));
  EXPECT_TRUE(
      contradictions.found({less(Expr(a), Expr(c)), less(Expr(c), int_imm(3)), less(int_imm(2), Expr(a))}, {c.get()}))
      << "what is fixed connects no parts, and bounds all of them";
}

TEST(Contradictions, PartsThatAreNotAffineAreTheLargest) {
  const Expr product = Expr(a) * Expr(b);
  const Expr e = less(product + int_imm(1), Expr(c) * int_imm(3) + product);
  const std::vector<Expr> parts = inexact_parts(e);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_TRUE(same_expr(parts[0], product));
  EXPECT_TRUE(inexact_parts(less(floor_div(Expr(a), int_imm(3)), Expr(b))).empty());
}

TEST(Contradictions, ASupersetIsNotKnownToHaveItsPoints) {
  const ExactEngine engine;
  const IntegerSet some(engine, {a}, le(int_imm(0), Expr(a)));
  EXPECT_EQ(some.emptiness().verdict, Verdict::Refuted);
  const IntegerSet superset = as_superset(some, "a doubt");
  EXPECT_EQ(superset.emptiness().verdict, Verdict::Unknown);
  EXPECT_EQ(superset.is_empty().reason, "a doubt");
  EXPECT_EQ(as_superset(superset, "another").inexact(), "a doubt");
  const IntegerSet none(engine, {a}, both(less(Expr(a), int_imm(0)), less(int_imm(0), Expr(a))));
  EXPECT_EQ(as_superset(none, "a doubt").emptiness().verdict, Verdict::Proved);
}

}  // namespace
}  // namespace helve::testing
