// Sets and relations next to the lists of their points, for comparisons.
// A point is a vector whose first entry is the parameter `n`. What a relation contains is asked point by point, so that
// nothing of the algebra is used to judge the algebra.
#pragma once

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <utility>
#include <vector>

#include "helve/arith/relation_algebra.h"
#include "random_conditions.h"

namespace helve::testing {

using Point = std::vector<int64_t>;
using Points = std::set<Point>;
using Pairs = std::set<std::pair<Point, Point>>;  ///< of equal first entries

inline constexpr Side kSmall = {-1, 2};
inline const VarRef kParameter = make_var("n");

inline std::vector<VarRef> joined(std::vector<VarRef> a, const std::vector<VarRef>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

inline std::vector<VarRef> tuple_of(size_t length) {
  std::vector<VarRef> out;
  for (size_t i = 0; i < length; ++i) out.push_back(make_var(std::string(1, static_cast<char>('a' + i))));
  return out;
}

inline Expr at_point(const std::vector<VarRef>& vars, const Assignment& at) {
  Expr all = bool_imm(true);
  for (const VarRef& v : vars) all = both(all, eq(Expr(v), int_imm(static_cast<int64_t>(at.at(v.get())))));
  return all;
}

struct SomeSet {
  IntegerSet set;
  Points points;
};

struct SomeRelation {
  IntegerRelation relation;
  Pairs pairs;
};

/// The points of the box where a random condition holds: neither few nor nearly all.
inline std::pair<Expr, Points> some_points(uint32_t seed, const std::vector<VarRef>& vars) {
  Random random(seed, vars);
  while (true) {
    const Expr condition = random.condition(2);
    size_t count = 0;
    Points points;
    const auto add = [&](const Assignment& at) {
      ++count;
      if (*evaluate(condition, at) != 0) points.insert(tuple_at(vars, at));
    };
    each_point(vars, add, kSmall);
    if (points.size() > count / 8 && points.size() < count - count / 8)
      return {both(box(vars, kSmall), condition), points};
  }
}

inline SomeSet some_set(const ExactEngine& engine, uint32_t seed, size_t length) {
  const std::vector<VarRef> tuple = tuple_of(length);
  const auto [condition, points] = some_points(seed, joined({kParameter}, tuple));
  return {IntegerSet(engine, tuple, condition), points};
}

inline SomeRelation some_relation(const ExactEngine& engine, uint32_t seed, size_t arity, size_t images) {
  const std::vector<VarRef> tuple = tuple_of(arity + images);
  const auto [condition, points] = some_points(seed, joined({kParameter}, tuple));
  Pairs pairs;
  for (const Point& point : points) {
    const auto middle = point.begin() + 1 + static_cast<int64_t>(arity);
    Point image = {point[0]};
    image.insert(image.end(), middle, point.end());
    pairs.emplace(Point(point.begin(), middle), image);
  }
  return {relation_of(IntegerSet(engine, tuple, condition), arity), pairs};
}

/// The points of a set, all of which must be in the box.
inline Points points_of(const ExactEngine& engine, const IntegerSet& set) {
  const std::vector<VarRef> tuple = tuple_of(set.tuple().size()), all = joined({kParameter}, tuple);
  EXPECT_EQ(set.inexact(), "");
  EXPECT_EQ(set.is_subset_of(IntegerSet(engine, tuple, box(all, kSmall))).verdict, Verdict::Proved);
  Points out;
  const auto look = [&](const Assignment& at) {
    const Verdict in = IntegerSet(engine, tuple, at_point(all, at)).is_subset_of(set).verdict;
    EXPECT_NE(in, Verdict::Unknown);
    if (in == Verdict::Proved) out.insert(tuple_at(all, at));
  };
  each_point(all, look, kSmall);
  return out;
}

/// The pairs of a relation, all of which must be in the box.
inline Pairs pairs_in(const ExactEngine& engine, const IntegerRelation& relation) {
  const std::vector<VarRef> tuple = tuple_of(relation.tuple().size()), image = tuple_of(relation.image().size());
  const std::vector<VarRef> all = joined(joined({kParameter}, tuple), image);
  std::vector<Expr> values;
  for (const VarRef& v : image) values.push_back(Expr(v));
  EXPECT_EQ(relation.inexact(), "");
  // The image's variables are quantified here: they take all values of the box.
  const IntegerRelation whole(engine, tuple, values, box(all, kSmall), image);
  EXPECT_EQ(relation.is_subset_of(whole).verdict, Verdict::Proved);
  Pairs out;
  const auto look = [&](const Assignment& at) {
    const IntegerRelation pair(engine, tuple, values, at_point(all, at), image);
    const Verdict in = pair.is_subset_of(relation).verdict;
    EXPECT_NE(in, Verdict::Unknown);
    if (in == Verdict::Proved)
      out.emplace(tuple_at(joined({kParameter}, tuple), at), tuple_at(joined({kParameter}, image), at));
  };
  each_point(all, look, kSmall);
  return out;
}

/// A set that takes isl long.
inline IntegerSet costly_set(const ExactEngine& engine, const std::vector<VarRef>& tuple) {
  Expr all = box(tuple);
  for (size_t k = 0; k + 1 < tuple.size(); ++k) {
    const Expr mixed = floor_mod(Expr(tuple[k]) * int_imm(7) + Expr(tuple[k + 1]), int_imm(13));
    all = both(all, apply(Op::Ne, {mixed, int_imm(3)}));
  }
  return IntegerSet(engine, tuple, all);
}

/// Calls `f` with engines of growing budgets until it returns true. It must return false before, and true in the end.
template <class F>
void until_budget_suffices(F&& f) {
  int64_t budget = 100;
  while (!f(ExactEngine(budget))) {
    budget += budget / 5;
    ASSERT_LT(budget, 100 * kOperationLimit);
  }
  EXPECT_GT(budget, 100);
}

inline void expect_over_budget(const Answer& answer) {
  EXPECT_EQ(answer.verdict, Verdict::Unknown);
  EXPECT_EQ(answer.reason, kOverBudget);
}

inline void expect_same(const IntegerSet& a, const IntegerSet& b) {
  EXPECT_EQ(a.is_subset_of(b).verdict, Verdict::Proved);
  EXPECT_EQ(b.is_subset_of(a).verdict, Verdict::Proved);
}

}  // namespace helve::testing
