// Congruences against brute force: a residue is the set of its members in a window wide enough to tell all of them
// apart.
#include "helve/arith/residue.h"

#include <gtest/gtest.h>

#include <limits>
#include <set>
#include <vector>

#include "evaluate.h"
#include "helve/arith/simplify.h"

namespace helve {
namespace {

using namespace helve::testing;

constexpr int64_t kLargest = 6;     // of the moduli
constexpr int64_t kWindow =
    2 * 60;  // holds a member of every pair of moduli up to 6, and two of every modulus up to 36

std::vector<Residue> residues() {
  std::vector<Residue> out;
  for (int64_t v = -4; v <= 4; ++v) out.push_back(Residue::point(v));
  for (int64_t m = 1; m <= kLargest; ++m) {
    for (int64_t r = 0; r < m; ++r) out.push_back(Residue::of(m, r));
  }
  return out;
}

std::vector<int64_t> members(const Residue& a) {
  std::vector<int64_t> out;
  for (int64_t v = -kWindow; v <= kWindow; ++v) {
    if (a.contains(v)) out.push_back(v);
  }
  return out;
}

bool includes(const Residue& outer, const Residue& inner) {
  for (int64_t v : members(inner)) {
    if (!outer.contains(v)) return false;
  }
  return true;
}

/// The least residue with modulus up to `largest` (or a point) that holds all values.
Residue least_of(const std::vector<int64_t>& values, int64_t largest) {
  if (std::set<int64_t>(values.begin(), values.end()).size() == 1) return Residue::point(values[0]);
  for (int64_t m = largest; m > 1; --m) {
    bool all = true;
    for (int64_t v : values) all = all && Residue::of(m, values[0]).contains(v);
    if (all) return Residue::of(m, values[0]);
  }
  return Residue::everything();
}

TEST(Residue, HasOneFormForEachSet) {
  EXPECT_EQ(Residue::of(4, -1), (Residue{4, 3}));
  EXPECT_EQ(Residue::of(1, 7), Residue::everything());
  EXPECT_EQ(Residue::of(0, 7), Residue::point(7));
  const std::vector<Residue> all = residues();
  for (const Residue& a : all) {
    for (const Residue& b : all) EXPECT_EQ(members(a) == members(b), a == b);
  }
}

TEST(Residue, JoinAndMeetAreThoseOfTheSets) {
  for (const Residue& a : residues()) {
    for (const Residue& b : residues()) {
      const Residue join = unite(a, b);
      ASSERT_TRUE(includes(join, a) && includes(join, b));
      ASSERT_EQ(join, unite(b, a));
      for (const Residue& other : residues()) {  // least: whatever holds both holds the join
        if (includes(other, a) && includes(other, b)) {
          ASSERT_TRUE(includes(other, join));
        }
      }
      const std::optional<Residue> meet = intersect(a, b);
      std::vector<int64_t> both;
      for (int64_t v : members(a)) {
        if (b.contains(v)) both.push_back(v);
      }
      ASSERT_EQ(meet.has_value(), !both.empty());
      if (meet) {
        ASSERT_EQ(members(*meet), both);
      }
      ASSERT_EQ(intersect(b, a).has_value(), meet.has_value());
    }
  }
}

TEST(Residue, TheLatticeLawsHold) {
  const std::vector<Residue> all = residues();
  for (const Residue& a : all) {
    EXPECT_EQ(unite(a, a), a);
    EXPECT_EQ(intersect(a, a), a);
    for (const Residue& b : all) {
      EXPECT_EQ(intersect(a, unite(a, b)), a);
      if (const auto meet = intersect(a, b)) {
        EXPECT_EQ(unite(a, *meet), a);
      }
      for (const Residue& c : all) ASSERT_EQ(unite(unite(a, b), c), unite(a, unite(b, c)));
    }
  }
}

TEST(Residue, OperationsHoldEveryValueAndSumsAndProductsAreTight) {
  for (const Residue& a : residues()) {
    for (const Residue& b : residues()) {
      const Residue sum = a + b, product = a * b, quotient = floor_div(a, b), remainder = floor_mod(a, b);
      std::vector<int64_t> sums, products, quotients, remainders;
      for (int64_t x : members(a)) {
        for (int64_t y : members(b)) {
          if (std::abs(x) > 40 || std::abs(y) > 40) continue;
          sums.push_back(x + y);
          products.push_back(x * y);
          ASSERT_TRUE(sum.contains(x + y) && product.contains(x * y));
          if (y == 0) continue;
          const auto q = static_cast<int64_t>(floor_quotient_of(x, y));
          quotients.push_back(q);
          remainders.push_back(x - q * y);
          ASSERT_TRUE(quotient.contains(q)) << x << " // " << y;
          ASSERT_TRUE(remainder.contains(x - q * y)) << x << " % " << y;
        }
      }
      ASSERT_EQ(sum, least_of(sums, kLargest));
      ASSERT_EQ(product, least_of(products, kLargest * kLargest));
      if (b.modulus == 0 && b.remainder != 0 &&
          a.modulus % b.remainder == 0) {  // division by a constant that divides the modulus
        ASSERT_EQ(quotient, least_of(quotients, kLargest));
        ASSERT_EQ(remainder, least_of(remainders, kLargest)) << a.modulus << " " << a.remainder << " % " << b.remainder;
      }
    }
    const Residue negative = -a;
    for (int64_t x : members(a)) ASSERT_TRUE(negative.contains(-x));
    ASSERT_EQ(-negative, a);
  }
}

TEST(Residue, DivisionOfAProductFindsExactlyTheFactors) {
  for (const Residue& product : residues()) {
    for (int64_t k = -8; k <= 8; ++k) {
      if (k == 0) continue;
      const std::optional<Residue> value = divided(product, k);
      bool any = false;
      for (int64_t v = -kWindow; v <= kWindow; ++v) {
        const bool inside = product.contains(k * v);
        any |= inside;
        ASSERT_EQ(inside, value && value->contains(v))
            << k << " * " << v << " = " << product.remainder << " mod " << product.modulus;
      }
      ASSERT_EQ(any, value.has_value());
    }
  }
}

TEST(Residue, IntervalsShrinkToMembers) {
  for (const Residue& a : residues()) {
    for (int64_t low = -9; low <= 9; ++low) {
      for (int64_t high = low - 1; high <= 10; ++high) {
        const Interval range = tightened(Interval{low, high}, a);
        for (int64_t v = -20; v <= 20; ++v) {
          if (v >= low && v <= high && a.contains(v)) {
            ASSERT_TRUE(v >= *range.low && v <= *range.high);
          }
        }
        if (!range.is_empty()) {
          ASSERT_TRUE(a.contains(*range.low) && a.contains(*range.high));
        }
      }
    }
    EXPECT_EQ(tightened(Interval::everything(), Residue::of(3, 1)), Interval::everything());
  }
}

TEST(Residue, NothingWrapsAtTheEndsOfInt64) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  const std::vector<int64_t> ends = {least, least + 1, -1, 0, 1, 2, 3, int64_t{1} << 62, most - 1, most};
  std::vector<Residue> all;
  for (int64_t v : ends) {
    all.push_back(Residue::point(v));
    if (v > 0) {
      for (int64_t r : ends) all.push_back(Residue::of(v, r));
    }
  }
  auto holds = [](const Residue& a, Wide v) {
    return a.modulus == 0 ? v == a.remainder : (v - a.remainder) % a.modulus == 0;
  };
  auto some = [&](const Residue& a) {
    std::vector<Wide> out = {a.remainder};
    if (a.modulus != 0) out.insert(out.end(), {Wide{a.remainder} + a.modulus, Wide{a.remainder} - a.modulus});
    return out;
  };
  for (const Residue& a : all) {
    for (const Residue& b : all) {
      const Residue sum = a + b, product = a * b, quotient = floor_div(a, b), remainder = floor_mod(a, b),
                    join = unite(a, b);
      for (Wide x : some(a)) {
        EXPECT_TRUE(holds(-a, -x) && holds(join, x));
        for (Wide y : some(b)) {
          if (x > most || x < least || y > most || y < least) continue;
          ASSERT_TRUE(holds(sum, x + y) && holds(product, x * y) && holds(join, y));
          if (y == 0) continue;
          const Wide q = floor_quotient_of(x, y);
          ASSERT_TRUE(holds(quotient, q) && holds(remainder, x - q * y));
        }
      }
      if (const auto meet = intersect(a, b)) {
        for (Wide x : some(a)) {
          if (holds(b, x)) {
            ASSERT_TRUE(holds(*meet, x));
          }
        }
      } else {
        for (Wide x : some(a)) ASSERT_FALSE(holds(b, x));
      }
    }
    for (int64_t k : ends) {
      if (k == 0) continue;
      const auto value = divided(a, k);
      for (Wide x : some(a)) {
        if (x % k == 0) {
          ASSERT_TRUE(value && holds(*value, x / k));
        }
      }
    }
    (void)tightened(Interval{least, most}, a);
  }
}

class Divisibility : public ::testing::Test {
 protected:
  VarRef n_ = make_var("n"), m_ = make_var("m"), j_ = make_var("j"), k_ = make_var("k");
  Expr n = n_, m = m_, j = j_, k = k_;
  Facts facts;
  static Expr c(int64_t value) { return int_imm(value); }
  static Expr eq(const Expr& a, const Expr& b) { return apply(Op::Eq, {a, b}); }
  std::string text(const Expr& e) const { return to_text(simplify(e, facts)); }
};

TEST_F(Divisibility, OfConstantFactors) {
  EXPECT_EQ(text(floor_div(n * c(8) + j, c(4))), "n * 2 + j // 4");
  EXPECT_EQ(text(floor_mod(n * c(8) + c(3), c(4))), "3");
  EXPECT_EQ(text(eq(floor_mod(n * c(12) + m * c(8), c(4)), c(0))), "True");
  EXPECT_EQ(text(eq(floor_mod(min(n * c(4), m * c(6)), c(2)), c(0))), "True");
  EXPECT_EQ(text(floor_mod(select(less(n, m), n * c(8), m * c(4)) + j, c(4))), "j % 4");
  EXPECT_EQ(text(eq(n * c(4) + c(1), m * c(2))), "False");
}

TEST_F(Divisibility, OfVariables) {
  facts.bind_residue(n_, Residue::of(4, 0));
  facts.bind_residue(m_, Residue::of(8, 5));
  facts.bind(j_, {0, 3});
  EXPECT_EQ(text(floor_mod(n, c(4))), "0");
  EXPECT_EQ(text(floor_mod(n + j, c(4))), "j");
  EXPECT_EQ(text(floor_div(n + j, c(4))), "n // 4");
  EXPECT_EQ(text(floor_div(n + c(9), c(4))), "n // 4 + 2");
  EXPECT_EQ(text(floor_mod(n * m, c(4))), "0");
  EXPECT_EQ(text(floor_mod(m * m, c(8))), "1");
  EXPECT_EQ(text(floor_mod(m, c(-4))), "-3");
  EXPECT_EQ(text(eq(m, n)), "False");
  EXPECT_EQ(text(floor_div(n * c(2) + j, c(8))), "n // 4");
  EXPECT_FALSE(can_prove(eq(floor_mod(n, c(8)), c(0)), facts));
}

TEST_F(Divisibility, TightensBounds) {
  facts.bind_residue(n_, Residue::of(4, 0));
  facts.bind(n_, {1, 30});
  EXPECT_EQ(facts.range_of(n_.get()), (Interval{4, 28}));
  facts.bind_loop(k_, c(0), floor_div(n, c(4)));
  EXPECT_TRUE(can_prove(less(k * c(4) + c(3), n), facts));
  EXPECT_FALSE(can_prove(less(k * c(4) + c(4), n), facts));
}

TEST_F(Divisibility, IsLearntFromGuards) {
  facts.assume(eq(floor_mod(n, c(8)), c(0)));
  EXPECT_EQ(facts.residue_of(n_.get()), Residue::of(8, 0));
  facts.assume(eq(m * c(3), n + c(1)));
  EXPECT_EQ(facts.residue_of(m_.get()), Residue::of(8, 3));
  EXPECT_EQ(text(floor_div(n + m + j, c(8))), "m // 8 + n // 8 + (j + 3) // 8");
  Facts never;
  never.assume(eq(floor_mod(n * c(2), c(4)), c(2)));
  EXPECT_EQ(never.residue_of(n_.get()), Residue::of(2, 1));
  never.assume(eq(floor_mod(n, c(2)), c(0)));
  EXPECT_TRUE(never.contradictory());
  Facts lane;
  lane.bind_value(k_.get(), n * c(16) + c(4));
  EXPECT_EQ(lane.residue_of(k_.get()), Residue::of(16, 4));
}

}  // namespace
}  // namespace helve
