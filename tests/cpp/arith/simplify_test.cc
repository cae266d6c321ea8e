// The normal form by example: addresses and guards of tiled loops, and what must stay as it is.
#include "helve/arith/simplify.h"

#include <gtest/gtest.h>

#include <limits>

#include "evaluate.h"
#include "helve/ir/expr/chain.h"

namespace helve {
namespace {

struct Matrix final : Storage {
  size_t rank() const override { return 1; }
};

Expr c(int64_t value) { return int_imm(value); }
std::string text(const Expr& e, const Facts& facts = {}) { return to_text(simplify(e, facts)); }

class Simplify : public ::testing::Test {
 protected:
  VarRef i_ = make_var("i"), ii_ = make_var("ii"), j_ = make_var("j"), ti_ = make_var("ti"), tj_ = make_var("tj"),
         n_ = make_var("n"), m_ = make_var("m");
  VarRef p_ = make_var("p", kBool), q_ = make_var("q", kBool);
  Expr i = i_, ii = ii_, j = j_, ti = ti_, tj = tj_, n = n_, m = m_, p = p_, q = q_;
};

TEST_F(Simplify, SumsAreCollectedAndOrdered) {
  EXPECT_EQ(text(j + i), "i + j");
  EXPECT_EQ(text(c(3) + ii + ti * c(32)), "ti * 32 + ii + 3");
  EXPECT_EQ(text((i + j) - (j + i)), "0");
  EXPECT_EQ(text(n - c(32) * ti), "n - ti * 32");
  EXPECT_EQ(text(c(5) - i), "5 - i");
  EXPECT_EQ(text(apply(Op::Neg, {i}) - c(5)), "-i - 5");
  EXPECT_EQ(text((i + c(1)) * (j + c(2))), "i * j + i * 2 + j + 2");
  EXPECT_EQ(text(j * n * c(4) + i), "j * n * 4 + i");
}

TEST_F(Simplify, TiledAddresses) {
  Facts facts;
  facts.bind(ii_, {0, 31});
  const Expr address = ti * c(32) + ii;
  EXPECT_EQ(simplify(floor_div(address, c(32)), facts), ti);
  EXPECT_EQ(simplify(floor_mod(address, c(32)), facts), ii);
  EXPECT_EQ(text(floor_div(address, c(64)), facts), "ti // 2");
  EXPECT_EQ(text(floor_mod(address, c(64)), facts), "ti % 2 * 32 + ii");
  EXPECT_EQ(text(floor_div(address + c(37), c(32))), "ti + (ii + 5) // 32 + 1");
  EXPECT_EQ(simplify(floor_div(i, c(32)) * c(32) + floor_mod(i, c(32))), i);
  EXPECT_EQ(text(floor_div(floor_div(i, c(4)), c(8))), "i // 32");
  EXPECT_EQ(text(floor_mod(floor_mod(i, c(32)), c(8))), "i % 8");
  EXPECT_EQ(text(floor_div(floor_mod(i, c(128)), c(32))), "i // 32 % 4");
  EXPECT_EQ(text(i - floor_div(i, c(8)) * c(8)), "i % 8");
  EXPECT_EQ(text(floor_div(i, c(-3))), "-i // 3");
  EXPECT_EQ(text(apply(Op::BitAnd, {apply(Op::ShiftRight, {i, c(3)}), c(7)})), "i // 8 % 8");
}

TEST_F(Simplify, TwoLevelsOfTiles) {
  // 128 x 128 in tiles of 32 x 32: the four digits come back out of the flat address.
  Facts facts;
  const VarRef r_ = make_var("r"), s_ = make_var("s");
  const Expr r = r_, s = s_;
  facts.bind_loop(ti_, c(0), c(4));
  facts.bind_loop(tj_, c(0), c(4));
  facts.bind_loop(r_, c(0), c(32));
  facts.bind_loop(s_, c(0), c(32));
  const Expr flat = ((ti * c(4) + tj) * c(32) + r) * c(32) + s;
  EXPECT_EQ(simplify(floor_div(flat, c(4096)), facts), ti);
  EXPECT_EQ(simplify(floor_mod(floor_div(flat, c(1024)), c(4)), facts), tj);
  EXPECT_EQ(simplify(floor_mod(floor_div(flat, c(32)), c(32)), facts), r);
  EXPECT_EQ(simplify(floor_mod(flat, c(32)), facts), s);
}

TEST_F(Simplify, SymbolicExtents) {
  Facts facts;
  facts.bind_loop(i_, c(0), n);
  facts.bind_loop(j_, c(0), m);
  EXPECT_TRUE(can_prove(less(i, n), facts));
  EXPECT_TRUE(can_prove(less(i * m + j, n * m), facts));
  EXPECT_FALSE(can_prove(less(i * m + j, n * m - c(1)), facts));
  EXPECT_EQ(simplify(floor_div(i * m + j, m), facts), i);
  EXPECT_EQ(simplify(floor_mod(i * m + j, m), facts), j);
  EXPECT_TRUE(can_prove(less(c(0), m), facts));
  EXPECT_FALSE(can_prove(less(i, m), facts));
}

TEST_F(Simplify, GuardsOfTails) {
  Facts facts;
  facts.bind_loop(ti_, c(0), ceil_div(n, c(32)));
  facts.bind_loop(ii_, c(0), min(c(32), n - ti * c(32)));
  EXPECT_TRUE(can_prove(less(ti * c(32) + ii, n), facts));
  EXPECT_TRUE(can_prove(less(ti * c(32), n), facts));
  EXPECT_TRUE(can_prove(less(ii, c(32)), facts));
  EXPECT_FALSE(can_prove(less(ti * c(32) + c(31), n), facts));
  EXPECT_EQ(simplify(floor_div(ti * c(32) + ii, c(32)), facts), ti);
  EXPECT_EQ(text(min(n - ti * c(32), c(32)), facts), "T.min(n - ti * 32, 32)");
}

TEST_F(Simplify, ExtremesByProvedOrder) {
  Facts facts;
  facts.bind(i_, {0, 10});
  EXPECT_EQ(text(min(i + c(3), i + c(5))), "i + 3");
  EXPECT_EQ(text(max(min(i, j), i)), "i");
  EXPECT_EQ(text(min(i, c(10)), facts), "i");
  EXPECT_EQ(text(min(c(4), min(j, min(i, j)))), "T.min(T.min(i, j), 4)");
  EXPECT_EQ(text(min(i, j) + max(i, j)), "i + j");
  EXPECT_EQ(text(apply(Op::Abs, {i - c(10)}), facts), "10 - i");
}

TEST_F(Simplify, Comparisons) {
  EXPECT_EQ(text(apply(Op::Ge, {i, c(0)})), "-1 < i");
  EXPECT_EQ(text(apply(Op::Le, {i, c(5)})), "i < 6");
  EXPECT_EQ(text(apply(Op::Gt, {n, ti * c(32) + ii})), "ti * 32 + ii < n");
  EXPECT_EQ(text(less(i * c(4), c(10))), "i < 3");
  EXPECT_EQ(text(apply(Op::Eq, {i * c(4), c(10)})), "False");
  EXPECT_EQ(text(apply(Op::Ne, {i * c(2), j * c(2)})), "i != j");
  EXPECT_EQ(text(apply(Op::Not, {logical_and(less(i, j), p)})), "j < i + 1 or not p");
}

TEST_F(Simplify, ConditionsDecideWhatStandsUnderThem) {
  EXPECT_EQ(text(select(less(i, c(8)), select(less(i, c(9)), n, m), j)), "T.if_then_else(i < 8, n, j)");
  EXPECT_EQ(text(logical_and(less(i, c(5)), less(i, c(9)))), "i < 5");
  EXPECT_EQ(text(logical_and(less(i, c(5)), less(c(5), i))), "False");
  EXPECT_EQ(text(apply(Op::Or, {less(i, c(5)), less(c(3), i)})), "True");
  EXPECT_EQ(text(logical_and(p, logical_and(q, p))), "p and q");
}

TEST_F(Simplify, LongConditionsTakeNoExponentialTime) {
  std::vector<Expr> parts = {less(i, n)};
  for (int k = 0; k < 40; ++k) parts.push_back(less(Expr(make_var("v" + std::to_string(k))), n));
  const Expr both = chain(Op::And, parts), either = chain(Op::Or, parts);
  EXPECT_EQ(simplify(both), both);  // twice the work a level would never end
  EXPECT_EQ(simplify(either), either);
}

TEST_F(Simplify, DataIntegersWrapAndFloatsStay) {
  const DType int8{TypeCode::Int, 8};
  const Expr d = make_var("d", int8), f = make_var("f", kFloat32);
  EXPECT_EQ(constant_value(int_imm(100, int8) + int_imm(100, int8)), -56);
  EXPECT_EQ(simplify(d + int_imm(0, int8)), d);
  const Expr apart = less(d, d + int_imm(1, int8));  // false at 127
  EXPECT_EQ(simplify(apart), apart);
  const Expr half = floor_div(d * int_imm(2, int8), int_imm(2, int8));
  EXPECT_EQ(simplify(half), half);
  for (const Expr& e :
       {f + float_imm(0, kFloat32), f * float_imm(1, kFloat32), f - f, apply(Op::Eq, {f, f}), min(f, f)}) {
    EXPECT_EQ(simplify(e), e) << to_text(e);
  }
  const Expr nan_sensitive = apply(Op::Not, {less(f, float_imm(1, kFloat32))});
  EXPECT_EQ(simplify(nan_sensitive), nan_sensitive);
}

TEST_F(Simplify, ConstantsFoldAsTheBuilderFoldsThem) {
  Facts zero;
  zero.bind_loop(i_, c(0), c(1));
  const Expr widened = cast(cast(i, kFloat32), kFloat64);
  EXPECT_EQ(text(widened, zero), to_text(float_imm(0, kFloat64)));
  EXPECT_EQ(text(apply(Op::Neg, {cast(i, kFloat32)}), zero), to_text(float_imm(-0.0, kFloat32)));
  const Expr truth = apply(Op::Eq, {i, c(0)});
  EXPECT_EQ(text(cast(truth, kFloat32), zero), to_text(float_imm(1, kFloat32)));
  Facts odd;
  odd.bind_loop(i_, c(2049), c(1));
  EXPECT_EQ(text(cast(i, {TypeCode::Float, 16}), odd), to_text(float_imm(2048, {TypeCode::Float, 16})));
}

TEST_F(Simplify, IndicesOfLoadsAreSimplified) {
  auto storage = make_ref<Matrix>();
  storage->name = "A";
  storage->dtype = kFloat32;
  const Expr read = load(StorageRef(storage), {floor_div(i * c(32) + c(5), c(32))});
  EXPECT_EQ(text(read + read), "A[i] + A[i]");
}

TEST_F(Simplify, NormalFormsAreReturnedAsTheyAre) {
  for (const Expr& e : {i + j, ti * c(32) + ii + c(3), less(i, n + c(3)), floor_mod(i, c(32)), min(i, c(4)), i * m}) {
    EXPECT_EQ(simplify(e), e) << to_text(e);
  }
}

TEST_F(Simplify, OverflowLeavesTheExpression) {
  const int64_t most = std::numeric_limits<int64_t>::max();
  const Expr e = i * c(most) + i * c(most);
  EXPECT_EQ(simplify(e), e);
  EXPECT_EQ(constant_value(c(most) + c(1)), std::nullopt);
  EXPECT_EQ(constant_value(c(most) + c(1) - c(1)), std::nullopt);
  EXPECT_EQ(text(less(i, i + c(most))), "True");
}

TEST_F(Simplify, ConstantValues) {
  EXPECT_EQ(constant_value(c(6) * c(7)), 42);
  EXPECT_EQ(constant_value(floor_div(c(-7), c(2))), -4);
  EXPECT_EQ(constant_value(i - i + c(3)), 3);
  EXPECT_EQ(constant_value(i), std::nullopt);
  EXPECT_EQ(constant_value(int_imm(-1, DType{TypeCode::UInt, 64})), std::nullopt);
}

TEST_F(Simplify, FactsThatHoldNowhereAreNoticed) {
  Facts facts;
  facts.bind_loop(i_, c(0), c(0));
  EXPECT_TRUE(facts.contradictory());
  Facts one;
  one.bind_loop(i_, c(0), c(1));
  EXPECT_FALSE(one.contradictory());
  EXPECT_EQ(text(i + j, one), "j");
}

TEST(Intervals, HoldEveryValueAndAreTightForBoxes) {
  using testing::floor_quotient_of;
  for (int64_t al = -5; al <= 5; ++al) {
    for (int64_t ah = al; ah <= 6; ++ah) {
      for (int64_t bl = -5; bl <= 5; ++bl) {
        for (int64_t bh = bl; bh <= 6; ++bh) {
          const Interval a{al, ah}, b{bl, bh};
          const Interval sum = a + b, product = a * b, least = min(a, b), greatest = max(a, b), size = abs(a);
          const Interval quotient = floor_div(a, b), remainder = floor_mod(a, b);
          int64_t low = INT64_MAX, high = INT64_MIN;
          for (int64_t x = al; x <= ah; ++x) {
            for (int64_t y = bl; y <= bh; ++y) {
              low = std::min(low, x * y);
              high = std::max(high, x * y);
              ASSERT_TRUE(sum.within(al + bl, ah + bh) && least.at_most(std::min(ah, bh)) &&
                          greatest.at_least(std::max(al, bl)));
              ASSERT_TRUE(*least.low <= std::min(x, y) && *greatest.high >= std::max(x, y));
              ASSERT_TRUE(*size.low <= std::abs(x) && *size.high >= std::abs(x));
              if (y == 0) continue;
              const int64_t q = static_cast<int64_t>(floor_quotient_of(x, y)), r = x - q * y;
              ASSERT_TRUE((!quotient.low || *quotient.low <= q) && (!quotient.high || *quotient.high >= q));
              ASSERT_TRUE((!remainder.low || *remainder.low <= r) && (!remainder.high || *remainder.high >= r));
            }
          }
          ASSERT_EQ(product, (Interval{low, high}));
        }
      }
    }
  }
}

}  // namespace
}  // namespace helve
