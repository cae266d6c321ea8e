// The algebra of sets and relations against lists of their points.
#include "helve/arith/relation_algebra.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iterator>

#include "enumerated.h"

namespace helve {
namespace {

using namespace helve::testing;

template <class Set>
Set merged(const Set& a, const Set& b) {
  Set out = a;
  out.insert(b.begin(), b.end());
  return out;
}

template <class Set>
Set common(const Set& a, const Set& b) {
  Set out;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::inserter(out, out.end()));
  return out;
}

template <class Set>
Set without(const Set& a, const Set& b) {
  Set out;
  std::set_difference(a.begin(), a.end(), b.begin(), b.end(), std::inserter(out, out.end()));
  return out;
}

TEST(RelationAlgebra, OperationsOnSetsAgreeWithEnumeration) {
  size_t some = 0;
  for (uint32_t seed = 0; seed < 30; ++seed) {
    const ExactEngine engine;
    const SomeSet a = some_set(engine, 2 * seed, 2), b = some_set(engine, 2 * seed + 1, 2);
    ASSERT_EQ(points_of(engine, a.set), a.points);
    EXPECT_EQ(points_of(engine, union_of(a.set, b.set)), merged(a.points, b.points));
    EXPECT_EQ(points_of(engine, intersection_of(a.set, b.set)), common(a.points, b.points));
    EXPECT_EQ(points_of(engine, difference_of(a.set, b.set)), without(a.points, b.points));
    some += !common(a.points, b.points).empty() && !without(a.points, b.points).empty();
  }
  EXPECT_GT(some, 15U);
}

TEST(RelationAlgebra, OperationsOnRelationsAgreeWithEnumeration) {
  size_t some = 0;
  for (uint32_t seed = 0; seed < 10; ++seed) {
    const ExactEngine engine;
    const SomeRelation a = some_relation(engine, 3 * seed + 100, 1, 2), b = some_relation(engine, 3 * seed + 101, 1, 2);
    ASSERT_EQ(pairs_in(engine, a.relation), a.pairs);
    EXPECT_EQ(pairs_in(engine, union_of(a.relation, b.relation)), merged(a.pairs, b.pairs));
    EXPECT_EQ(pairs_in(engine, intersection_of(a.relation, b.relation)), common(a.pairs, b.pairs));
    EXPECT_EQ(pairs_in(engine, difference_of(a.relation, b.relation)), without(a.pairs, b.pairs));
    some += !common(a.pairs, b.pairs).empty() && !without(a.pairs, b.pairs).empty();

    Pairs turned;
    Points tuples, images, pairs;
    for (const auto& [tuple, image] : a.pairs) {
      turned.emplace(image, tuple);
      tuples.insert(tuple);
      images.insert(image);
      pairs.insert({tuple[0], tuple[1], image[1], image[2]});
    }
    EXPECT_EQ(pairs_in(engine, inverse_of(a.relation)), turned);
    EXPECT_EQ(points_of(engine, domain_of(a.relation)), tuples);
    EXPECT_EQ(points_of(engine, range_of(a.relation)), images);
    EXPECT_EQ(points_of(engine, pairs_of(a.relation)), pairs);
    EXPECT_EQ(relation_of(pairs_of(a.relation), 1).is_equal(a.relation).verdict, Verdict::Proved);
  }
  EXPECT_GT(some, 7U);
}

TEST(RelationAlgebra, CompositionsAndImagesAgreeWithEnumeration) {
  size_t some = 0;
  for (uint32_t seed = 0; seed < 15; ++seed) {
    const ExactEngine engine;
    const SomeRelation first = some_relation(engine, 4 * seed + 200, 1, 2);
    const SomeRelation second = some_relation(engine, 4 * seed + 201, 2, 1);
    const SomeSet tuples = some_set(engine, 4 * seed + 202, 1), images = some_set(engine, 4 * seed + 203, 2);
    Pairs composed, from, to;
    Points reached;
    for (const auto& pair : first.pairs) {
      for (const auto& [tuple, image] : second.pairs) {
        if (pair.second == tuple) composed.emplace(pair.first, image);
      }
      if (images.points.contains(pair.second)) to.insert(pair);
      if (!tuples.points.contains(pair.first)) continue;
      from.insert(pair);
      reached.insert(pair.second);
    }
    EXPECT_EQ(pairs_in(engine, composition_of(first.relation, second.relation)), composed);
    EXPECT_EQ(pairs_in(engine, with_domain_in(first.relation, tuples.set)), from);
    EXPECT_EQ(pairs_in(engine, with_range_in(first.relation, images.set)), to);
    EXPECT_EQ(points_of(engine, image_of(tuples.set, first.relation)), reached);
    some += !composed.empty() && composed.size() < 64 && !from.empty() && from.size() < first.pairs.size();
  }
  EXPECT_GT(some, 5U);
}

TEST(RelationAlgebra, EmptinessAndSubsetsAgreeWithEnumeration) {
  int empty = 0;
  const auto point = [](const Witness& witness, const std::vector<VarRef>& entries) {
    return tuple_at(joined({kParameter}, entries), assignment(witness));
  };
  for (uint32_t seed = 0; seed < 100; ++seed) {
    const ExactEngine engine;
    const SomeRelation a = some_relation(engine, 2 * seed + 400, 1, 2);
    SomeRelation b = some_relation(engine, 2 * seed + 401, 1, 2);
    if (seed % 2) b = {union_of(b.relation, a.relation), merged(b.pairs, a.pairs)};
    const SomeRelation rest = {difference_of(a.relation, b.relation), without(a.pairs, b.pairs)};
    const Answer is_empty = rest.relation.is_empty(), is_subset = a.relation.is_subset_of(b.relation);
    ASSERT_EQ(is_empty.verdict, rest.pairs.empty() ? Verdict::Proved : Verdict::Refuted);
    ASSERT_EQ(is_subset.verdict, is_empty.verdict);
    empty += rest.pairs.empty();
    if (rest.pairs.empty()) continue;
    const std::vector<VarRef>&tuple = rest.relation.tuple(), &image = rest.relation.image();
    EXPECT_EQ(std::make_pair(point(is_empty.witness, tuple), point(is_empty.other, image)), *rest.pairs.begin());
    EXPECT_TRUE(rest.pairs.contains({point(is_subset.witness, tuple), point(is_subset.other, image)}));
  }
  EXPECT_GT(empty, 10);
  EXPECT_LT(empty, 90);
}

TEST(RelationAlgebra, LawsHold) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    const ExactEngine engine(20 * kOperationLimit);  // results of results have many pieces
    const auto some = [&](uint32_t k, size_t arity, size_t images) {
      return some_relation(engine, 4 * seed + k + 700, arity, images).relation;
    };
    const IntegerRelation a = some(0, 1, 2), b = some(1, 2, 1), c = some(2, 1, 1), d = some(3, 1, 2);
    const auto same = [](const IntegerRelation& p, const IntegerRelation& q) {
      EXPECT_EQ(p.is_equal(q).verdict, Verdict::Proved);
    };
    same(inverse_of(inverse_of(a)), a);
    same(inverse_of(composition_of(a, b)), composition_of(inverse_of(b), inverse_of(a)));
    same(composition_of(composition_of(a, b), c), composition_of(a, composition_of(b, c)));
    same(composition_of(union_of(a, d), b), union_of(composition_of(a, b), composition_of(d, b)));
    expect_same(domain_of(inverse_of(a)), range_of(a));
    expect_same(image_of(range_of(a), b), range_of(composition_of(a, b)));
    const IntegerSet& tuples = domain_of(c);
    same(with_domain_in(a, tuples), inverse_of(with_range_in(inverse_of(a), tuples)));
    // De Morgan, for the complement in a relation that contains both.
    const IntegerRelation all = union_of(union_of(a, d), some(4, 1, 2));
    const auto complement = [&](const IntegerRelation& r) { return difference_of(all, r); };
    same(complement(union_of(a, d)), intersection_of(complement(a), complement(d)));
    same(complement(intersection_of(a, d)), union_of(complement(a), complement(d)));
    same(complement(complement(a)), a);
  }
}

TEST(RelationAlgebra, ASupersetStaysOne) {
  const VarRef i = make_var("i"), n = make_var("n"), m = make_var("m");
  const ExactEngine engine;
  const Expr product = Expr(n) * Expr(m);
  const std::string why = "'n * m' is not affine";
  const IntegerSet exact(engine, {i}, in_range(i, 0, 9)),
      wide(engine, {i}, both(in_range(i, 0, 9), le(product, Expr(i))));
  const IntegerRelation step(engine, {i}, {Expr(i) + int_imm(1)}, in_range(i, 0, 9));
  const IntegerRelation some(engine, {i}, {Expr(i) + int_imm(1)}, both(in_range(i, 0, 9), le(product, Expr(i))));
  ASSERT_EQ(wide.inexact(), why);
  ASSERT_EQ(some.inexact(), why);
  for (const IntegerSet& set :
       {union_of(exact, wide), union_of(wide, exact), intersection_of(exact, wide), intersection_of(wide, exact),
        difference_of(wide, exact), difference_of(exact, wide), domain_of(some), range_of(some), image_of(exact, some),
        image_of(wide, step), pairs_of(some), renamed(wide, {make_var("j")})}) {
    EXPECT_EQ(set.inexact(), why);
    EXPECT_NE(set.is_empty().verdict, Verdict::Refuted);
  }
  for (const IntegerRelation& relation :
       {union_of(step, some), intersection_of(some, step), difference_of(some, step), difference_of(step, some),
        inverse_of(some), composition_of(step, some), composition_of(some, step), with_domain_in(some, exact),
        with_domain_in(step, wide), with_range_in(step, wide), relation_of(pairs_of(some), 1)}) {
    EXPECT_EQ(relation.inexact(), why);
    EXPECT_NE(relation.is_empty().verdict, Verdict::Refuted);
  }
  // No point of `exact` is known to be in `wide`, although isl's superset contains all of them.
  ASSERT_EQ(exact.is_subset_of(wide).reason, why);
  EXPECT_EQ(difference_of(exact, wide).is_empty().verdict, Verdict::Unknown);
  EXPECT_EQ(difference_of(step, some).is_empty().verdict, Verdict::Unknown);
  EXPECT_EQ(exact.is_subset_of(difference_of(exact, wide)).verdict, Verdict::Unknown);
  // What is empty although it may contain too much is empty.
  EXPECT_EQ(difference_of(wide, exact).is_empty().verdict, Verdict::Proved);
  const IntegerSet above(engine, {i}, less(int_imm(9), Expr(i)));
  EXPECT_EQ(intersection_of(wide, above).is_empty().verdict, Verdict::Proved);
  EXPECT_EQ(image_of(above, some).is_empty().verdict, Verdict::Proved);
}

TEST(RelationAlgebra, WhatIsQuantifiedIsNoEntry) {
  const VarRef i = make_var("i"), k = make_var("k");
  const ExactEngine engine;
  const IntegerSet even(engine, {i}, both(in_range(k, 0, 5), eq(Expr(i), Expr(k) * int_imm(2))), {k});
  const IntegerSet third(engine, {i}, both(in_range(k, 0, 3), eq(Expr(i), Expr(k) * int_imm(3))), {k});
  const auto such = [&](const Expr& condition) { return IntegerSet(engine, {i}, condition); };
  const Expr x(i);
  expect_same(intersection_of(even, third), such(apply(Op::Or, {eq(x, int_imm(0)), eq(x, int_imm(6))})));
  expect_same(difference_of(third, even), such(apply(Op::Or, {eq(x, int_imm(3)), eq(x, int_imm(9))})));
  const IntegerRelation next(engine, {i}, {x + int_imm(1)}, bool_imm(true));
  expect_same(image_of(even, next), such(both(in_range(i, 1, 11), eq(floor_mod(x, int_imm(2)), int_imm(1)))));
  expect_same(renamed(even, {k}), even);
}

TEST(RelationAlgebra, ResultsOfWhatIsOverTheBudgetAreUnknown) {
  const std::vector<VarRef> tuple = tuple_of(4);
  const ExactEngine engine(2000);
  const IntegerSet over = costly_set(engine, tuple), other(engine, tuple, box(tuple));
  const IntegerRelation step = relation_of(over, 2), relation = relation_of(other, 2);
  expect_over_budget(over.is_empty());
  ASSERT_EQ(relation.is_empty().verdict, Verdict::Refuted);
  for (const IntegerSet& each : {union_of(over, other), intersection_of(other, over), difference_of(over, other),
                                 difference_of(other, over), pairs_of(step), renamed(over, tuple_of(4))}) {
    expect_over_budget(each.is_empty());
    expect_over_budget(other.is_subset_of(each));
  }
  const IntegerSet first = domain_of(step);
  for (const IntegerSet& each : {first, range_of(step), image_of(first, relation), image_of(range_of(relation), step)})
    expect_over_budget(each.is_empty());
  for (const IntegerRelation& each :
       {step, union_of(step, relation), intersection_of(relation, step), difference_of(relation, step),
        inverse_of(step), composition_of(relation, step), composition_of(step, relation),
        with_domain_in(relation, first), with_range_in(relation, first), with_domain_in(step, domain_of(relation))}) {
    expect_over_budget(each.is_empty());
    expect_over_budget(each.is_subset_of(relation));
  }
  // The engine still answers.
  EXPECT_EQ(intersection_of(other, other).is_subset_of(other).verdict, Verdict::Proved);
}

TEST(RelationAlgebra, AnOperationOverTheBudgetHasNoResult) {
  const std::vector<VarRef> tuple = tuple_of(3);
  int over_budget = 0;
  until_budget_suffices([&](const ExactEngine& engine) {
    const IntegerSet set = costly_set(engine, tuple), all(engine, tuple, box(tuple));
    const IntegerSet none(engine, tuple, bool_imm(false));
    // What is known has nothing in common with nothing.
    const auto is_known = [&](const IntegerSet& s) { return intersection_of(s, none).is_empty().reason.empty(); };
    if (!is_known(set)) return false;
    const IntegerSet rest =
        difference_of(difference_of(all, set), renamed(set.projected({tuple[2], tuple[1], tuple[0]}), tuple));
    if (is_known(rest)) return true;
    expect_over_budget(rest.is_empty());
    ++over_budget;
    return false;
  });
  EXPECT_GT(over_budget, 0);
}

}  // namespace
}  // namespace helve
