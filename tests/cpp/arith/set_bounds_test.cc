// Bounds of sets as expressions, against enumeration.
#include "helve/arith/set_bounds.h"

#include <gtest/gtest.h>

#include <map>

#include "enumerated.h"

namespace helve {
namespace {

using namespace helve::testing;

TEST(SetBounds, BoundsAgreeWithEnumeration) {
  constexpr int kLimit = 24;
  int found = 0, missing = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    const std::vector<VarRef> tuple = tuple_of(3), all = joined({kParameter}, tuple);
    const auto [condition, points] = some_points(seed, all);
    const ExactEngine engine;
    const IntegerSet set(engine, tuple, condition);
    for (size_t k = 0; k < tuple.size(); ++k) {
      // Of the parameter, the earlier entries and the one that is bounded.
      std::map<Point, std::pair<int64_t, int64_t>> ends;
      for (const Point& point : points) {
        const auto at = point.begin() + 1 + static_cast<int64_t>(k);
        auto& [least, greatest] = ends.try_emplace(Point(point.begin(), at), *at, *at).first->second;
        least = std::min(least, *at);
        greatest = std::max(greatest, *at);
      }
      const std::optional<Expr> least = least_value(set, tuple[k], kLimit);
      const std::optional<Expr> greatest = greatest_value(set, tuple[k], kLimit);
      found += least.has_value() + greatest.has_value();
      missing += !least + !greatest;
      for (const auto& [point, between] : ends) {
        Assignment at;
        for (size_t d = 0; d < point.size(); ++d) at[all[d].get()] = point[d];
        if (least) {
          ASSERT_EQ(static_cast<int64_t>(*evaluate(*least, at)), between.first) << to_text(condition);
        }
        if (greatest) {
          ASSERT_EQ(static_cast<int64_t>(*evaluate(*greatest, at)), between.second) << to_text(condition);
        }
      }
    }
  }
  EXPECT_GT(found, 600);
  EXPECT_GT(missing, 0);  // forms that are too long
}

TEST(SetBounds, BoundsOfOpenSetsAgreeWithEnumeration) {
  const VarRef i = make_var("i"), n = make_var("n");
  int found = 0;
  for (uint32_t seed = 0; seed < 300; ++seed) {
    const Expr condition = Random(seed + 5000, {i, n}).condition(2);
    const ExactEngine engine;
    const IntegerSet set(engine, {i}, condition);
    const std::optional<Expr> least = least_value(set, i, 24), greatest = greatest_value(set, i, 24);
    found += least.has_value() + greatest.has_value();
    const auto check = [&](const Assignment& at) {
      if (*evaluate(condition, at) == 0) return;
      for (const std::optional<Expr>& end : {least, greatest}) {
        if (!end) continue;
        const Wide value = *evaluate(*end, at);
        EXPECT_NE(*evaluate(condition, {{i.get(), value}, {n.get(), at.at(n.get())}}), 0) << to_text(condition);
      }
      if (least) {
        EXPECT_LE(*evaluate(*least, at), at.at(i.get())) << to_text(condition);
      }
      if (greatest) {
        EXPECT_GE(*evaluate(*greatest, at), at.at(i.get())) << to_text(condition);
      }
    };
    each_point({i, n}, check, {-12, 12});
  }
  EXPECT_GT(found, 60);
  EXPECT_LT(found, 540);  // sets without bounds
}

/// The text of a bound, or "none".
std::string text_of(const std::optional<Expr>& bound) { return bound ? to_text(*bound) : "none"; }

TEST(SetBounds, BoundsOfTilesAndSteps) {
  const VarRef t = make_var("t"), i = make_var("i"), n = make_var("n");
  const ExactEngine engine;
  const Expr loop = both(le(int_imm(0), Expr(i)), less(Expr(i), Expr(n)));
  const IntegerSet tile(engine, {t, i}, both(loop, eq(floor_div(Expr(i), int_imm(4)), Expr(t))));
  EXPECT_EQ(text_of(least_value(tile, i, 8)), "4 * t");
  EXPECT_EQ(text_of(greatest_value(tile, i, 8)), "T.min(n - 1, 4 * t + 3)");
  EXPECT_EQ(text_of(least_value(tile, t, 8)), "0");
  EXPECT_EQ(text_of(greatest_value(tile, t, 8)), "(n + 3) // 4 - 1");
  EXPECT_EQ(text_of(greatest_value(tile.projected({i}), i, 8)), "n - 1");
  EXPECT_EQ(text_of(greatest_value(tile, i, 3)), "none");  // four operators
  // An expression is bounded as an entry of the tuple.
  const VarRef e = make_var("e");
  const IntegerSet used(engine, {e, i},
                        both(both(loop, le(Expr(n), int_imm(100))), eq(Expr(e), Expr(i) * int_imm(-3) + int_imm(1))));
  EXPECT_EQ(text_of(least_value(used, e, 8)), "-3 * n + 4");
  EXPECT_EQ(text_of(greatest_value(used, e, 8)), "1");
}

TEST(SetBounds, ASetThatIsOpenOnOneSideHasOneBound) {
  const VarRef i = make_var("i"), n = make_var("n");
  const ExactEngine engine;
  const IntegerSet from(engine, {i}, le(Expr(n), Expr(i) * int_imm(3)));
  const std::optional<Expr> least = least_value(from, i, 8);
  ASSERT_TRUE(least);
  for (int64_t at = -9; at < 9; ++at) {
    EXPECT_TRUE(*evaluate(*least, {{n.get(), at}}) == -floor_quotient_of(-at, 3)) << to_text(*least);
  }
  EXPECT_FALSE(greatest_value(from, i, 8));
  const IntegerSet to(engine, {i}, le(Expr(i), Expr(n)));
  EXPECT_EQ(text_of(greatest_value(to, i, 8)), "n");
  EXPECT_FALSE(least_value(to, i, 8));
  // Every third number from n on: isl's search for the least one is not asked for.
  const Expr third = eq(floor_mod(Expr(i), int_imm(3)), int_imm(1));
  EXPECT_FALSE(least_value(IntegerSet(engine, {i}, both(le(Expr(n), Expr(i)), third)), i, 8));
  EXPECT_TRUE(
      least_value(IntegerSet(engine, {i}, both(both(le(Expr(n), Expr(i)), le(Expr(i), int_imm(99))), third)), i, 12));
}

TEST(SetBounds, VariablesOfDataTypesAreConverted) {
  const VarRef i = make_var("i"), n = make_var("n", kInt32), b = make_var("b", kInt32);
  const ExactEngine engine;
  const Expr loop = both(le(int_imm(0), Expr(i)), less(Expr(i), cast(Expr(n), kIndex)));
  const std::optional<Expr> last = greatest_value(IntegerSet(engine, {i}, loop), i, 8);
  ASSERT_TRUE(last);
  EXPECT_EQ((*last)->dtype, kIndex);
  EXPECT_TRUE(*evaluate(*last, {{n.get(), 12}}) == 11);
  const IntegerSet every(engine, {b}, bool_imm(true));
  EXPECT_EQ(text_of(least_value(every, b, 8)), "-2147483648");
  EXPECT_EQ(text_of(greatest_value(every, b, 8)), "2147483647");
}

TEST(SetBounds, WhatIsNotKnownHasNoBound) {
  const VarRef i = make_var("i"), n = make_var("n"), m = make_var("m");
  const ExactEngine engine;
  EXPECT_FALSE(least_value(IntegerSet(engine, {i}, bool_imm(false)), i, 8));
  EXPECT_FALSE(least_value(IntegerSet(engine, {i}, bool_imm(true)), i, 8));
  // isl's superset has bounds, which are not those of the set.
  const IntegerSet some(engine, {i}, both(in_range(i, 0, 9), less(Expr(n) * Expr(m), Expr(i))));
  EXPECT_FALSE(least_value(some, i, 8));
  EXPECT_FALSE(greatest_value(some, i, 8));
}

TEST(SetBounds, ThereIsNoBoundOverTheBudget) {
  const std::vector<VarRef> tuple = tuple_of(4);
  int over_budget = 0;
  until_budget_suffices([&](const ExactEngine& engine) {
    const IntegerSet set = costly_set(engine, tuple);
    if (set.is_empty().verdict == Verdict::Unknown) return false;
    const std::optional<Expr> least = least_value(set, tuple[0], 8);
    over_budget += !least;
    if (least) {
      EXPECT_EQ(text_of(least), "-3");
    }
    return least.has_value();
  });
  EXPECT_GT(over_budget, 0);
}

}  // namespace
}  // namespace helve
