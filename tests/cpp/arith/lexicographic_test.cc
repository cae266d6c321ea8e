// The lexicographic order and first and last images, against lists of their points.
#include "helve/arith/lexicographic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "enumerated.h"

namespace helve {
namespace {

using namespace helve::testing;

TEST(Lexicographic, TheOrderIsThatOfVectors) {
  for (size_t length = 0; length <= 2; ++length) {
    const ExactEngine engine;
    const std::vector<VarRef> a = tuple_of(length), b = tuple_of(length), all = joined({kParameter}, joined(a, b));
    const IntegerRelation inside = relation_of(IntegerSet(engine, joined(a, b), box(all, kSmall)), length);
    Pairs less, less_or_same;
    const auto add = [&](const Assignment& at) {
      const Point first = tuple_at(joined({kParameter}, a), at), second = tuple_at(joined({kParameter}, b), at);
      if (first < second) less.emplace(first, second);
      if (first <= second) less_or_same.emplace(first, second);
    };
    each_point(all, add, kSmall);
    EXPECT_EQ(pairs_in(engine, intersection_of(inside, before(engine, a, b))), less);
    EXPECT_EQ(pairs_in(engine, intersection_of(inside, before_or_same(engine, a, b))), less_or_same);
  }
}

TEST(Lexicographic, TheOrderObeysItsLaws) {
  const ExactEngine engine;
  for (size_t length = 1; length <= 4; ++length) {
    const std::vector<VarRef> a = tuple_of(length), b = tuple_of(length);
    const IntegerRelation less = before(engine, a, b), less_or_same = before_or_same(engine, a, b);
    EXPECT_EQ(less.is_subset_of(less_or_same).verdict, Verdict::Proved);
    EXPECT_EQ(less_or_same.is_subset_of(less).verdict, Verdict::Refuted);
    EXPECT_EQ(intersection_of(less, inverse_of(less)).is_empty().verdict, Verdict::Proved);
    // Integers are not dense: between neighbours of the last entry there is nothing.
    EXPECT_EQ(composition_of(less, less).is_subset_of(less).verdict, Verdict::Proved);
    EXPECT_EQ(less.is_subset_of(composition_of(less, less)).verdict, Verdict::Refuted);
    EXPECT_EQ(composition_of(less_or_same, less).is_equal(less).verdict, Verdict::Proved);
    const IntegerRelation either = union_of(less, inverse_of(less_or_same));
    EXPECT_EQ(relation_of(IntegerSet(engine, joined(a, b), bool_imm(true)), length).is_subset_of(either).verdict,
              Verdict::Proved);
  }
}

TEST(Lexicographic, FirstAndLastImagesAgreeWithEnumeration) {
  for (uint32_t seed = 0; seed < 12; ++seed) {
    const ExactEngine engine;
    const auto [relation, pairs] = some_relation(engine, seed + 900, 1, 2);
    std::map<Point, Point> first, last;  // pairs are in the order of their images
    for (const auto& [tuple, image] : pairs) {
      first.emplace(tuple, image);
      last[tuple] = image;
    }
    EXPECT_EQ(pairs_in(engine, least_images(relation)), Pairs(first.begin(), first.end()));
    EXPECT_EQ(pairs_in(engine, greatest_images(relation)), Pairs(last.begin(), last.end()));
  }
}

TEST(Lexicographic, ExtremesAreUniqueAndNothingIsBeyondThem) {
  int several = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const ExactEngine engine;
    const IntegerRelation relation = some_relation(engine, seed + 1000, 1, 2).relation;
    const IntegerRelation first = least_images(relation), last = greatest_images(relation);
    const IntegerRelation less = before(engine, tuple_of(2), tuple_of(2));
    several += inverse_of(relation).is_injective().verdict == Verdict::Refuted;
    for (const IntegerRelation& extreme : {first, last}) {
      EXPECT_EQ(inverse_of(extreme).is_injective().verdict, Verdict::Proved);  // one image of each tuple
      EXPECT_EQ(extreme.is_subset_of(relation).verdict, Verdict::Proved);
      expect_same(domain_of(extreme), domain_of(relation));
    }
    // { tuple -> what is after its first image } and nothing else but that image.
    EXPECT_EQ(difference_of(relation, first).is_subset_of(composition_of(first, less)).verdict, Verdict::Proved);
    EXPECT_EQ(intersection_of(relation, composition_of(last, less)).is_empty().verdict, Verdict::Proved);
    EXPECT_EQ(greatest_images(first).is_equal(first).verdict, Verdict::Proved);
  }
  EXPECT_GT(several, 50);
}

TEST(Lexicographic, TheTuplesNeedNoBounds) {
  const std::vector<VarRef> tuple = tuple_of(2), all = joined({kParameter}, tuple);
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const ExactEngine engine;
    const Expr bounded = both(Random(seed + 1100, all).condition(2), box({tuple[1]}, kSmall));
    const IntegerRelation relation = relation_of(IntegerSet(engine, tuple, bounded), 1);
    std::map<Point, Point> first;
    const auto add = [&](const Assignment& at) {
      if (*evaluate(bounded, at) == 0) return;
      const Point point = tuple_at(all, at);
      Point& least = first.try_emplace({point[0], point[1]}, Point{point[0], point[2]}).first->second;
      least = std::min(least, {point[0], point[2]});
    };
    each_point(all, add, kSmall);
    const IntegerRelation window = relation_of(IntegerSet(engine, tuple, box(all, kSmall)), 1);
    EXPECT_EQ(pairs_in(engine, intersection_of(least_images(relation), window)), Pairs(first.begin(), first.end()));
  }
}

TEST(Lexicographic, TheLastWriteBeforeARead) {
  // for i: for j: X[i + j] = .. ; then X[k] is read: its last write is by the greatest i with 0 <= k - i < 8.
  const VarRef i = make_var("i"), j = make_var("j"), k = make_var("k"), n = make_var("n");
  const ExactEngine engine;
  const Expr loops = both(both(le(int_imm(0), Expr(i)), less(Expr(i), Expr(n))), in_range(j, 0, 7));
  const IntegerRelation writes(engine, {i, j}, {Expr(i) + Expr(j)}, loops);
  const IntegerRelation last = greatest_images(inverse_of(writes));
  const Expr i_last = min(Expr(k), Expr(n) - int_imm(1));
  const Expr written = both(both(le(int_imm(0), Expr(k)), le(int_imm(1), Expr(n))), le(Expr(k) - Expr(n), int_imm(6)));
  EXPECT_EQ(last.is_equal(IntegerRelation(engine, {k}, {i_last, Expr(k) - i_last}, written)).verdict, Verdict::Proved);
}

TEST(Lexicographic, WhatHasNoKnownExtremeIsKept) {
  const VarRef i = make_var("i"), j = make_var("j"), n = make_var("n"), m = make_var("m");
  const ExactEngine engine;
  const auto relation = [&](const Expr& condition) { return relation_of(IntegerSet(engine, {i, j}, condition), 1); };
  for (const IntegerRelation& open :
       {relation(le(Expr(i), Expr(j))),
        relation(both(le(Expr(i), Expr(j)), eq(floor_mod(Expr(j), Expr(int_imm(3))), int_imm(1))))}) {
    ASSERT_EQ(open.inexact(), "");
    for (const IntegerRelation& extreme : {least_images(open), greatest_images(open)}) {
      EXPECT_EQ(extreme.inexact(), kUnboundedImages);
      EXPECT_EQ(open.is_subset_of(extreme).reason, kUnboundedImages);
      EXPECT_EQ(extreme.is_subset_of(open).verdict, Verdict::Proved);
    }
  }
  const IntegerRelation some = relation(both(in_range(j, 0, 9), less(Expr(n) * Expr(m), Expr(i) + Expr(j))));
  ASSERT_EQ(some.inexact(), "'n * m' is not affine");
  // The least images of isl's superset need not be images at all.
  EXPECT_EQ(least_images(some).inexact(), some.inexact());
  EXPECT_EQ(relation(both(in_range(j, 0, 9), eq(Expr(i), int_imm(5)))).is_subset_of(least_images(some)).reason,
            some.inexact());
  EXPECT_EQ(least_images(relation(both(le(Expr(i), Expr(j)), le(Expr(j), Expr(n))))).inexact(), "");
}

TEST(Lexicographic, ExtremesOverTheBudgetAreUnknown) {
  int over_budget = 0;
  until_budget_suffices([&](const ExactEngine& engine) {
    const IntegerRelation relation = relation_of(costly_set(engine, tuple_of(3)), 1);
    if (relation.is_empty().verdict == Verdict::Unknown) return false;
    const Answer answer = least_images(relation).is_empty();
    if (answer.verdict == Verdict::Refuted) return true;
    expect_over_budget(answer);
    ++over_budget;
    return false;
  });
  EXPECT_GT(over_budget, 0);
}

}  // namespace
}  // namespace helve
