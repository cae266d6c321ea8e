// The bridge to isl against enumeration.
// Random conditions over small boxes: every verdict is checked by counting through the box, witnesses by evaluation.
#include "helve/arith/relation.h"

#include <gtest/gtest.h>

#include <map>
#include <set>

#include "random_conditions.h"

namespace helve {
namespace {

using namespace helve::testing;

const std::vector<VarRef> kVars = {make_var("x"), make_var("y"), make_var("z")};

TEST(IntegerSet, EmptinessAndSubsetsAgreeWithEnumeration) {
  int empty = 0, subsets = 0;
  for (uint32_t seed = 0; seed < 150; ++seed) {
    Random random(seed, kVars);
    const Expr a = random.condition(2), b = random.condition(2), c = random.condition(1);
    ExactEngine engine;
    const Expr first = both(both(a, b), c);
    const IntegerSet set(engine, kVars, both(box(kVars), first)), wider(engine, kVars, both(box(kVars), a));
    const IntegerSet other(engine, kVars, both(box(kVars), b));
    bool none = true, inside = true;
    each_point(kVars, [&](const Assignment& at) {
      none &= *evaluate(first, at) == 0;
      inside &= *evaluate(a, at) == 0 || *evaluate(b, at) != 0;
    });
    const Answer is_empty = set.is_empty(), is_subset = wider.is_subset_of(other);
    EXPECT_EQ(set.inexact(), "");
    EXPECT_EQ(set.emptiness().verdict, is_empty.verdict);
    ASSERT_EQ(to_string(is_empty.verdict), none ? "proved" : "refuted") << to_text(first);
    ASSERT_EQ(to_string(is_subset.verdict), inside ? "proved" : "refuted") << to_text(a) << "  in  " << to_text(b);
    if (!none) {
      EXPECT_NE(*evaluate(first, assignment(is_empty.witness)), 0);
    }
    if (!inside) {
      EXPECT_NE(*evaluate(a, assignment(is_subset.witness)), 0);
      EXPECT_EQ(*evaluate(b, assignment(is_subset.witness)), 0);
    }
    empty += none;
    subsets += inside;
  }
  EXPECT_GT(empty, 10);
  EXPECT_LT(empty, 140);
  EXPECT_GT(subsets, 10);
  EXPECT_LT(subsets, 140);
}

/// Accesses in one loop share its variable; a second one moved the parameters among what is quantified.
TEST(IntegerSet, ALocalThatIsGivenTwiceIsOne) {
  const VarRef e = make_var("e"), local = make_var("i"), parameter = make_var("p");
  const Expr inside = both(le(int_imm(0), Expr(e)), less(Expr(e), int_imm(3)));
  const Expr one = both(eq(Expr(e), Expr(parameter)), both(le(int_imm(0), Expr(local)), less(Expr(local), int_imm(3))));
  ExactEngine engine;
  for (const std::vector<VarRef>& locals : {std::vector<VarRef>{local}, std::vector<VarRef>{local, local}}) {
    const IntegerSet written(engine, {e}, one, locals);
    EXPECT_EQ(IntegerSet(engine, {e}, inside).is_subset_of(written).verdict, Verdict::Refuted) << locals.size();
  }
}

TEST(IntegerSet, EqualitiesWithAQuotientAreExact) {
  const Expr x = Expr(kVars[0]), y = Expr(kVars[1]), z = Expr(kVars[2]);
  for (const int64_t divisor : {1, 2, 3, 7}) {
    const Expr quotient = floor_div(x * int_imm(2) - y, int_imm(divisor));
    const std::vector<Expr> values = {z - quotient, quotient - z - int_imm(1), quotient + z, int_imm(2) - quotient - y};
    for (const Expr& value : values) {
      for (const Expr& e : {eq(value, int_imm(0)), eq(int_imm(1), value)}) {
        const ExactEngine engine;
        each_point(kVars, [&](const Assignment& at) {
          Expr here = e;
          for (const VarRef& v : kVars) here = both(here, eq(Expr(v), int_imm(static_cast<int64_t>(at.at(v.get())))));
          const Verdict expected = *evaluate(e, at) == 0 ? Verdict::Proved : Verdict::Refuted;
          ASSERT_EQ(IntegerSet(engine, kVars, here).emptiness().verdict, expected) << to_text(here);
        });
      }
    }
  }
}

TEST(IntegerSet, TheWitnessIsTheLeastPoint) {
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Random random(seed + 1000, kVars);
    const Expr a = random.condition(2);
    std::set<std::vector<int64_t>> points;
    each_point(kVars, [&](const Assignment& at) {
      if (*evaluate(a, at) != 0) points.insert(tuple_at(kVars, at));
    });
    ExactEngine engine;
    const Answer answer = IntegerSet(engine, kVars, both(box(kVars), a)).is_empty();
    if (points.empty()) continue;
    ASSERT_EQ(answer.verdict, Verdict::Refuted);
    EXPECT_EQ(tuple_at(kVars, assignment(answer.witness)), *points.begin()) << to_text(a);
  }
}

TEST(IntegerSet, ProjectionsAgreeWithEnumeration) {
  const std::vector<VarRef> kept = {kVars[2], kVars[0]};
  for (uint32_t seed = 0; seed < 40; ++seed) {
    Random random(seed + 2000, kVars);
    const Expr a = random.condition(2), b = random.condition(1);
    std::set<std::vector<int64_t>> of_a, of_b;
    each_point(kVars, [&](const Assignment& at) {
      if (*evaluate(a, at) != 0) of_a.insert(tuple_at(kept, at));
      if (*evaluate(b, at) != 0) of_b.insert(tuple_at(kept, at));
    });
    ExactEngine engine;
    const IntegerSet set(engine, kVars, both(box(kVars), a)), other(engine, kVars, both(box(kVars), b));
    const Answer answer = set.projected(kept).is_subset_of(other.projected(kept));
    EXPECT_EQ(answer.verdict == Verdict::Proved, std::includes(of_b.begin(), of_b.end(), of_a.begin(), of_a.end()));
    EXPECT_NE(answer.verdict, Verdict::Unknown);
  }
}

TEST(IntegerRelation, InjectivityAndEqualityAgreeWithEnumeration) {
  const std::vector<VarRef> vars = {kVars[0], kVars[1]};
  int injective = 0, equal = 0;
  for (uint32_t seed = 0; seed < 120; ++seed) {
    Random random(seed + 3000, vars);
    const std::vector<Expr> image = {random.index(2), random.index(1)};
    // Half of the pairs differ only in how the first image is written.
    const Expr other = seed % 2 ? random.index(2) : (image[0] + int_imm(7)) - int_imm(7);
    const Expr guard = random.condition(1);
    std::map<std::vector<int64_t>, int> reached;
    bool same = true;
    each_point(vars, [&](const Assignment& at) {
      if (*evaluate(guard, at) == 0) return;
      ++reached[{static_cast<int64_t>(*evaluate(image[0], at)), static_cast<int64_t>(*evaluate(image[1], at))}];
      same &= *evaluate(image[0], at) == *evaluate(other, at);
    });
    bool unique = true;
    for (const auto& [point, count] : reached) unique &= count == 1;
    ExactEngine engine;
    const Expr domain = both(box(vars), guard);
    const IntegerRelation relation(engine, vars, image, domain), second(engine, vars, {other, image[1]}, domain);
    const Answer answer = relation.is_injective();
    ASSERT_EQ(to_string(answer.verdict), unique ? "proved" : "refuted") << to_text(image[0]);
    if (!unique) {
      const Assignment a = assignment(answer.witness), b = assignment(answer.other);
      EXPECT_NE(tuple_at(vars, a), tuple_at(vars, b));
      for (const Expr& e : image) EXPECT_TRUE(*evaluate(e, a) == *evaluate(e, b));
    }
    ASSERT_EQ(to_string(relation.is_equal(second).verdict), same ? "proved" : "refuted");
    injective += unique;
    equal += same;
  }
  EXPECT_GT(injective, 10);
  EXPECT_LT(injective, 110);
  EXPECT_GT(equal, 50);
  EXPECT_LT(equal, 110);
}

TEST(IntegerSet, ParametersAreNamedInTheWitness) {
  const VarRef i = make_var("i"), n = make_var("N");
  ExactEngine engine;
  const Expr inside = both(in_range(i, 0, 63), less(Expr(i), Expr(n)));
  EXPECT_EQ(IntegerSet(engine, {i}, both(inside, le(Expr(n), Expr(i)))).is_empty().verdict, Verdict::Proved);
  const Answer answer = IntegerSet(engine, {i}, both(inside, le(int_imm(5), Expr(i)))).is_empty();
  ASSERT_EQ(answer.verdict, Verdict::Refuted);
  EXPECT_EQ(value_in(answer.witness, n.get()), 6);
  EXPECT_EQ(value_in(answer.witness, i.get()), 5);
  EXPECT_EQ(value_in(answer.witness, kVars[0].get()), std::nullopt);
}

TEST(IntegerSet, UnboundedSetsHaveWitnesses) {
  const VarRef i = make_var("i");
  ExactEngine engine;
  const Answer answer = IntegerSet(engine, {i}, eq(floor_mod(Expr(i), int_imm(4)), int_imm(3))).is_empty();
  ASSERT_EQ(answer.verdict, Verdict::Refuted);
  EXPECT_EQ(floor_mod(Expr(i), int_imm(4))->dtype, kIndex);
  EXPECT_EQ(((*value_in(answer.witness, i.get()) % 4) + 4) % 4, 3);
}

TEST(IntegerSet, WhatIsNotAffineIsAnyValue) {
  const VarRef i = make_var("i"), n = make_var("n"), m = make_var("m");
  ExactEngine engine;
  const Expr product = Expr(n) * Expr(m);
  const IntegerSet some(engine, {i}, both(in_range(i, 0, 9), eq(Expr(i), product)));
  EXPECT_EQ(some.is_empty().verdict, Verdict::Unknown);
  EXPECT_EQ(some.is_empty().reason, "'n * m' is not affine");
  // The same product is the same value.
  const Expr twice = both(less(Expr(i), product), less(product, Expr(i)));
  EXPECT_EQ(IntegerSet(engine, {i}, twice).is_empty().verdict, Verdict::Proved);
  // A larger superset proves nothing, a larger subset does.
  const IntegerSet exact(engine, {i}, in_range(i, 0, 9)), narrow(engine, {i}, in_range(i, 2, 3));
  EXPECT_EQ(some.is_subset_of(exact).verdict, Verdict::Proved);
  EXPECT_EQ(narrow.is_subset_of(IntegerSet(engine, {i}, le(product, Expr(i)))).verdict, Verdict::Unknown);
  EXPECT_EQ(some.is_subset_of(narrow).verdict, Verdict::Unknown);
  EXPECT_EQ(exact.is_subset_of(narrow).verdict, Verdict::Refuted);
}

TEST(IntegerSet, LoadsChangeUnlessTheirStorageIsConstant) {
  struct Memory final : Storage {
    size_t rank() const override { return 1; }
  };
  Ref<Memory> memory = make_ref<Memory>();
  memory->name = "idx";
  memory->dtype = kInt32;
  const StorageRef storage = memory;
  const VarRef i = make_var("i");
  const Expr loaded = cast(load(storage, {Expr(i)}), kIndex);
  const Expr contradiction = both(less(loaded, int_imm(3)), less(int_imm(3), loaded));
  ExactEngine engine;
  EXPECT_EQ(IntegerSet(engine, {i}, contradiction).is_empty().verdict, Verdict::Unknown);
  const std::unordered_set<const Storage*> constant = {memory.get()};
  EXPECT_EQ(IntegerSet(engine, {i}, contradiction, {}, {nullptr, &constant}).is_empty().verdict, Verdict::Proved);
}

TEST(IntegerSet, DataIntegersKeepTheirRange) {
  const VarRef n = make_var("n", kInt32), b = make_var("b");
  ExactEngine engine;
  const Expr n_index = cast(Expr(n), kIndex);
  EXPECT_EQ(IntegerSet(engine, {n}, less(int_imm(2147483647), n_index)).is_empty().verdict, Verdict::Proved);
  EXPECT_EQ(IntegerSet(engine, {n}, less(int_imm(2147483646), n_index)).is_empty().verdict, Verdict::Refuted);
  // A conversion wraps, unless the value is known to fit.
  const Expr guard = both(less(cast(Expr(b), kInt32), Expr(n)), le(n_index, Expr(b)));
  Facts facts;
  facts.bind(b, {0, 1000});
  EXPECT_EQ(IntegerSet(engine, {n, b}, guard).is_empty().verdict, Verdict::Unknown);
  EXPECT_EQ(
      IntegerSet(engine, {n, b}, guard, {}, {[&]() -> const Facts& { return facts; }, nullptr}).is_empty().verdict,
      Verdict::Proved);
}

TEST(IntegerSet, ABudgetThatIsExceededIsUnknown) {
  std::vector<VarRef> vars;
  Expr all = bool_imm(true);
  for (int k = 0; k < 6; ++k) {
    vars.push_back(make_var("v"));
    all = both(all, in_range(vars.back(), 0, 50));
  }
  for (int k = 0; k + 1 < 6; ++k) {
    all =
        both(all, apply(Op::Ne, {floor_mod(Expr(vars[k]) * int_imm(7) + Expr(vars[k + 1]), int_imm(13)), int_imm(k)}));
  }
  ExactEngine small(2000);
  const Answer answer = IntegerSet(small, vars, all).is_empty();
  EXPECT_EQ(answer.verdict, Verdict::Unknown);
  EXPECT_EQ(answer.reason, "over the budget of operations");
  // The engine still answers.
  EXPECT_EQ(IntegerSet(small, {vars[0]}, less(Expr(vars[0]), Expr(vars[0]))).is_empty().verdict, Verdict::Proved);
}

TEST(IntegerRelation, AnEmptyTupleAndAnEmptyDomain) {
  ExactEngine engine;
  EXPECT_EQ(IntegerRelation(engine, {}, {int_imm(3)}, bool_imm(true)).is_injective().verdict, Verdict::Proved);
  EXPECT_EQ(IntegerRelation(engine, {kVars[0]}, {int_imm(3)}, bool_imm(false)).is_injective().verdict, Verdict::Proved);
  EXPECT_EQ(IntegerSet(engine, {}, bool_imm(true)).is_empty().verdict, Verdict::Refuted);
  EXPECT_EQ(IntegerSet(engine, {}, bool_imm(false)).is_empty().verdict, Verdict::Proved);
}

TEST(Relation, AConditionOutsideASetIsExact) {
  int simple = 0, unknown = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    const VarRef x = make_var("x"), y = make_var("y"), z = make_var("z");
    Random random(seed, {x, y, z});
    const Expr condition = both(random.condition(2), in_range(z, -3, 4));
    const ExactEngine engine;
    const IntegerSet set = IntegerSet(engine, {x, y, z}, condition).projected({y, x});
    const IntegerSet within(engine, {y, x}, le(int_imm(0), Expr(x)));
    const std::optional<Expr> outside = set.condition_outside(within, seed % 2 ? 24 : 4);
    if (!outside) {
      ++unknown;
      continue;
    }
    ++simple;
    for (int64_t i = 0; i < 9; ++i) {
      for (int64_t j = -6; j < 9; ++j) {
        bool inside = false;
        for (int64_t k = -3; k <= 4 && !inside; ++k)
          inside = evaluate(condition, {{x.get(), i}, {y.get(), j}, {z.get(), k}}).value() != 0;
        ASSERT_EQ(evaluate(*outside, {{x.get(), i}, {y.get(), j}}).value() != 0, !inside)
            << "seed " << seed << " at " << i << ", " << j;
      }
    }
  }
  EXPECT_GT(simple, 250);
  EXPECT_GT(unknown, 0);  // a condition that is too long
}

TEST(Relation, AConditionKeepsWhatUnitedPiecesWouldLose) {
  // The set is {0 <= n <= 2} and {n % 3 != 0}: united by isl it would be {0 <= n}, and no n would be outside.
  const VarRef n = make_var("n");
  const ExactEngine engine;
  const Expr no_third = apply(Op::Ne, {floor_mod(Expr(n), int_imm(3)), int_imm(0)});
  const Expr condition = apply(Op::Or, {less(Expr(n), int_imm(3)), no_third});
  const IntegerSet within(engine, {n}, le(int_imm(0), Expr(n)));
  const IntegerSet set(engine, {n}, condition);
  const std::optional<Expr> outside = set.condition_outside(within, 24);
  ASSERT_TRUE(outside);
  for (int64_t i = 0; i < 20; ++i) {
    EXPECT_EQ(evaluate(*outside, {{n.get(), i}}).value() != 0, i >= 3 && i % 3 == 0) << i;
  }
}

}  // namespace
}  // namespace helve
