// Bounds of index values: where the requirements hold, no value that is said to fit leaves its width.
#include "helve/analysis/index_bounds.h"

#include <gtest/gtest.h>

#include <limits>
#include <random>

#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/visit.h"

namespace helve {
namespace {

using Wide = __int128;
using Assignment = std::unordered_map<const Var*, Wide>;
constexpr Wide kMax = std::numeric_limits<int64_t>::max();
constexpr Wide kMin = std::numeric_limits<int64_t>::min();

Wide floor_quotient_of(Wide a, Wide b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

/// The value in unbounded integers; empty for a zero divisor. Operands of a product have to stay below 2^63 for 128
/// bits to do.
std::optional<Wide> evaluate(const Expr& e, const Assignment& at) {
  if (const int64_t* value = int_value(e)) return Wide{*value};
  if (const Var* var = as<Var>(e)) return at.at(var);
  const Apply* node = as<Apply>(e);
  if (!node) return std::nullopt;
  std::vector<Wide> v;
  for (const Expr& arg : node->args) {
    std::optional<Wide> value = evaluate(arg, at);
    if (!value) return value;
    v.push_back(*value);
  }
  Wide out = 0;
  switch (node->op) {
    case Op::Add: return __builtin_add_overflow(v[0], v[1], &out) ? std::nullopt : std::optional(out);
    case Op::Sub: return __builtin_sub_overflow(v[0], v[1], &out) ? std::nullopt : std::optional(out);
    case Op::Mul: return __builtin_mul_overflow(v[0], v[1], &out) ? std::nullopt : std::optional(out);
    case Op::Neg: return -v[0];
    case Op::Abs: return v[0] < 0 ? -v[0] : v[0];
    case Op::Min: return std::min(v[0], v[1]);
    case Op::Max: return std::max(v[0], v[1]);
    case Op::FloorDiv: return v[1] == 0 ? std::nullopt : std::optional(floor_quotient_of(v[0], v[1]));
    case Op::FloorMod: return v[1] == 0 ? std::nullopt : std::optional(v[0] - v[1] * floor_quotient_of(v[0], v[1]));
    case Op::ShiftLeft:
      if (v[1] < 0) return std::nullopt;
      if (v[0] == 0) return 0;
      return v[1] <= 62 && v[0] <= kMax && v[0] >= kMin ? v[0] * (Wide{1} << static_cast<int>(v[1]))
                                                        : Wide{v[0] < 0 ? -1 : 1} << 120;
    case Op::ShiftRight:
      return v[1] < 0 ? std::nullopt : std::optional(v[0] >> static_cast<int>(std::min<Wide>(v[1], 127)));
    case Op::BitAnd: return v[0] & v[1];
    case Op::BitOr: return v[0] | v[1];
    case Op::BitXor: return v[0] ^ v[1];
    case Op::BitNot: return ~v[0];
    case Op::Lt: return v[0] < v[1];
    case Op::Select: return v[0] != 0 ? v[1] : v[2];
    default: return std::nullopt;
  }
}

Expr c(int64_t value) { return int_imm(value); }

FunctionRef function(std::vector<VarRef> dims, std::vector<Param> params, Stmt body) {
  Ref<Function> f = make_ref<Function>();
  f->name = "f";
  f->dims = std::move(dims);
  f->params = std::move(params);
  f->body = std::move(body);
  return FunctionRef(f);
}

std::vector<std::string> texts(const IndexBounds& bounds) {
  std::vector<std::string> out;
  for (const IndexRequirement& each : bounds.requirements())
    out.push_back(each.reach ? to_text(expr_of(*each.reach)) : "none");
  return out;
}

class Bounds : public ::testing::Test {
 protected:
  VarRef M_ = make_var("M"), N_ = make_var("N"), b_ = make_var("b"), i_ = make_var("i"), j_ = make_var("j"),
         v_ = make_var("v");
  Expr M = M_, N = N_, b = b_, i = i_, j = j_, v = v_;
};

TEST_F(Bounds, OfConstantLoopsNeedNothing) {
  BufferRef out = make_buffer("out", kFloat32, MemoryScope::Param, {c(1 << 20), c(1 << 20)});
  const Expr product = i * c(1 << 12), quotient = floor_div(j, c(3));
  Stmt body = store(out, {i, quotient}, cast(product, kFloat32));
  body = for_loop(LoopKind::Serial, {i_}, {c(0)}, {c(1 << 20)}, for_loop(LoopKind::Serial, j_, c(1 << 20), body));
  IndexBounds bounds(function({}, {out}, kernel({b_}, {c(4)}, 128, body)));
  EXPECT_TRUE(bounds.requirements().empty());
  EXPECT_TRUE(bounds.fits32(i) && bounds.fits32(quotient));
  EXPECT_FALSE(bounds.fits32(product));  // reaches 2^32 - 2^12
  EXPECT_TRUE(bounds.fits64(product) && bounds.address_fits64(*out, {i, quotient}));
}

TEST_F(Bounds, OfDynamicExtentsAreRequired) {
  BufferRef out = make_buffer("out", kFloat32, MemoryScope::Param, {M, N});
  const Expr row = b * c(32) + i;
  Stmt body = for_loop(LoopKind::Serial, {i_}, {c(0)}, {c(32)},
                       for_loop(LoopKind::Serial, j_, N, store(out, {row, j}, float_imm(0, kFloat32))));
  IndexBounds bounds(function({M_, N_}, {out}, kernel({b_}, {ceil_div(M, c(32))}, 128, body)));
  // (M + 31) // 32 blocks of 32 rows of N elements of 4 bytes; the row itself fits for every extent that a call
  // accepts.
  EXPECT_EQ(texts(bounds), std::vector<std::string>{"N * ((M + 31) // 32) * 128 + N * 132 + 4"});
  EXPECT_TRUE(bounds.fits64(row) && bounds.fits64(j) && bounds.address_fits64(*out, {row, j}));
  EXPECT_FALSE(bounds.fits32(row) || bounds.fits32(j));
  EXPECT_TRUE(bounds.fits32(i));
}

TEST_F(Bounds, OfDataAreKnownUpTo32Bits) {
  BufferRef near = make_buffer("near", kInt32, MemoryScope::Param, {c(8)}),
            far = make_buffer("far", kInt64, MemoryScope::Param, {c(8)});
  BufferRef out = make_buffer("out", kFloat32, MemoryScope::Param, {N});
  const Expr small = cast(load(near, {c(0)}), kIndex), large = cast(load(far, {c(0)}), kIndex);
  Stmt body = seq({store(out, {small}, float_imm(0, kFloat32)), store(out, {large}, float_imm(0, kFloat32))});
  IndexBounds bounds(function({N_}, {near, far, out}, kernel({b_}, {c(1)}, 128, body)));
  EXPECT_TRUE(bounds.fits32(small) && bounds.fits64(small) && bounds.address_fits64(*out, {small}));
  EXPECT_FALSE(bounds.fits64(large) || bounds.fits64(large + c(1)) || bounds.address_fits64(*out, {large}));
  EXPECT_TRUE(bounds.fits64(floor_mod(large, c(8))) && bounds.fits32(floor_mod(large, c(8))));
  EXPECT_TRUE(bounds.requirements().empty());
}

TEST_F(Bounds, OfShiftsArePowersOfTwo) {
  BufferRef out = make_buffer("out", kInt64, MemoryScope::Param, {c(1)});
  const VarRef s = make_var("s");
  auto shifted = [&](const Expr& value, const Expr& amount) { return apply(Op::ShiftLeft, {value, amount}); };
  auto of = [&](const Expr& value) {
    Stmt body = store(out, {c(0)}, cast(value, kInt64));
    body = for_loop(LoopKind::Serial, i_, c(63), body);
    return texts(IndexBounds(function({M_}, {out, s}, kernel({b_}, {c(1)}, 128, body))));
  };
  EXPECT_EQ(of(shifted(c(1), i)), std::vector<std::string>{});
  EXPECT_EQ(of(shifted(c(2), i)), std::vector<std::string>{"none"});
  EXPECT_EQ(of(shifted(c(0), c(70))), std::vector<std::string>{});
  EXPECT_EQ(of(shifted(c(1), Expr(s))), std::vector<std::string>{"1 << T.abs(s)"});
  EXPECT_EQ(of(shifted(M, Expr(s) + c(1))), (std::vector<std::string>{"M * (1 << T.abs(s) + 1)", "T.abs(s) + 1"}));
  EXPECT_EQ(of(shifted(c(3), min(Expr(s), c(40)))), std::vector<std::string>{});
}

TEST_F(Bounds, OfShiftsUnderGuardsOfStatements) {
  // A digit of a thread's number has more values than the loop that was divided.
  BufferRef out = make_buffer("out", kInt64, MemoryScope::Param, {c(1)});
  BufferRef limit = make_buffer("limit", kIndex, MemoryScope::Local, {c(1)});
  const Expr digit = floor_mod(i, c(64));
  auto under = [&](const Expr& guard, const Expr& value, bool otherwise = false) {
    Stmt body = store(out, {c(0)}, cast(value, kInt64));
    body = otherwise ? if_then(guard, store(out, {c(0)}, cast(c(0), kInt64)), body) : if_then(guard, body);
    return texts(IndexBounds(function(
        {}, {out}, kernel({b_}, {c(4)}, 128, for_loop(LoopKind::Serial, i_, c(128), seq({alloc(limit), body}))))));
  };
  const Expr power = apply(Op::ShiftLeft, {c(1), digit});
  const std::vector<std::string> fits, beyond = {"none"};
  EXPECT_EQ(under(less(digit, c(63)), power), fits);
  EXPECT_EQ(under(less(digit, c(64)), power), beyond);
  EXPECT_EQ(under(apply(Op::Eq, {b, digit}), power), fits);
  EXPECT_EQ(under(less(c(62), digit), power, true), fits);
  EXPECT_EQ(under(less(c(62), digit), power), beyond);
  EXPECT_EQ(under(less(digit, c(60)), apply(Op::ShiftLeft, {c(8), digit})), fits);
  EXPECT_EQ(under(less(digit, c(61)), apply(Op::ShiftLeft, {c(8), digit})), beyond);
  EXPECT_EQ(under(less(digit, load(limit, {c(0)})), power), beyond);  // what memory says may hold no more
  IndexBounds bounds(function({}, {out},
                              kernel({b_}, {c(4)}, 128,
                                     for_loop(LoopKind::Serial, i_, c(128),
                                              if_then(less(digit, c(63)), store(out, {c(0)}, cast(power, kInt64)))))));
  EXPECT_FALSE(bounds.fits64(power));  // the guard is not said to hold wherever the value is computed
}

TEST_F(Bounds, OfDividedLoopsAskWhatTheLoopAsked) {
  // for v in N: value(v), in passes of 32 threads under the guard of its extent.
  BufferRef out = make_buffer("out", kInt64, MemoryScope::Param, {c(1)});
  const VarRef n = make_var("n");
  const Expr v = i * c(32) + j;
  auto under = [&](const Expr& guard, const Expr& value) {
    const Stmt body = if_then(guard, store(out, {c(0)}, cast(value, kInt64)));
    return function(
        {M_, N_}, {out, n},
        kernel({b_}, {c(4)}, 32,
               for_loop(LoopKind::Serial, i_, ceil_div(N, c(32)), for_loop(LoopKind::Serial, j_, c(32), body))));
  };
  auto of = [&](const Expr& guard, const Expr& value) { return texts(IndexBounds(under(guard, value))); };
  auto power = [&](const Expr& amount) { return apply(Op::ShiftLeft, {c(1), amount}); };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(of(less(v, N), power(v)), Texts{"1 << N"});
  EXPECT_EQ(of(less(v, N), power(v + c(2))), Texts{"1 << N + 1"});  // N - 1 and 2
  EXPECT_EQ(of(less(v, N), power(v * c(2))), Texts{"1 << N * 2"});
  EXPECT_EQ(of(less(v, min(M, N)), power(v)).size(), 1u);
  EXPECT_EQ(of(less(v, N), v * c(int64_t{1} << 58)), Texts{"N * 288230376151711744"});
  EXPECT_EQ(of(less(v, N), v * Expr(n)), Texts{"N * T.abs(n)"});
  EXPECT_EQ(of(less(v, N * c(1000)), power(v)), Texts{"1 << (N + 31) // 32 * 32"});  // the loop's own end is closer
  const FunctionRef divided = under(less(v, N), power(v));
  EXPECT_FALSE(IndexBounds(divided).fits64(power(v)));  // nor is the guard said to hold where the value is computed
  const FunctionRef both =
      function({N_}, {out},
               kernel({b_}, {c(4)}, 32,
                      for_loop(LoopKind::Serial, i_, ceil_div(N, c(32)),
                               for_loop(LoopKind::Serial, j_, c(32),
                                        if_then(less(v, N), store(out, {v * c(int64_t{1} << 50)},
                                                                  cast(v * c(int64_t{1} << 50), kInt64)))))));
  EXPECT_TRUE(IndexBounds(both).fits64(v * c(int64_t{1} << 50)));  // what its address requires says so
}

TEST_F(Bounds, OfGuardsThatNameOtherVariablesEnd) {
  // i < j + 5 and j < i + 5: each would be the limit of the other, so only the loops' extents are asked.
  BufferRef out = make_buffer("out", kInt64, MemoryScope::Param, {c(1)});
  auto within = [&](const Expr& first, const Expr& second, const Expr& guard, const Expr& amount) {
    const Expr power = apply(Op::ShiftLeft, {c(1), amount});
    const Stmt body = if_then(guard, store(out, {c(0)}, cast(power, kInt64)));
    return texts(IndexBounds(function(
        {M_, N_}, {out},
        kernel({b_}, {M}, 32, for_loop(LoopKind::Serial, i_, first, for_loop(LoopKind::Serial, j_, second, body))))));
  };
  using Texts = std::vector<std::string>;
  const Expr circle = apply(Op::And, {less(i, j + c(5)), less(j, i + c(5))});
  EXPECT_EQ(within(N, N, circle, i + j), Texts{"1 << N * 2"});
  const Expr v = i * c(64) + j;
  EXPECT_EQ(within(ceil_div(b, c(64)), c(64), less(v, b), v), Texts{"1 << M"});  // the number of a block is below M
}

TEST_F(Bounds, OfBranchesAreRequiredOfCallsThatTakeTheOther) {
  // Where n < 0 does not hold, -n is no bound of its magnitude.
  BufferRef out = make_buffer("out", kInt64, MemoryScope::Param, {c(1)});
  const VarRef n = make_var("n");
  const Stmt body = if_then(less(Expr(n), c(0)), store(out, {c(0)}, cast(floor_div(Expr(n) * c(5), c(8)), kInt64)));
  const IndexBounds bounds(function({}, {out, n}, kernel({b_}, {c(1)}, 32, body)));
  EXPECT_EQ(texts(bounds), (std::vector<std::string>{"T.abs(n) * 5 // 8 + 1", "T.abs(n) * 5"}));
}

TEST_F(Bounds, OfVariablesWithSeveralDefinitionsHoldBoth) {
  // A copy of a body shares its variables: v is i + 1 in one place and i * 1000 in the other.
  BufferRef out = make_buffer("out", kFloat32, MemoryScope::Param, {c(100000)});
  auto part = [&](const Expr& value, int64_t count) {
    return for_loop(LoopKind::Serial, i_, c(count), seq({bind(v_, value), store(out, {v}, float_imm(0, kFloat32))}));
  };
  IndexBounds small(function({}, {out}, kernel({b_}, {c(1)}, 128, seq({part(i + c(1), 50), part(i * c(1000), 100)}))));
  EXPECT_TRUE(small.fits32(v * c(20000)));
  EXPECT_FALSE(small.fits32(v * c(22000)));
}

TEST_F(Bounds, ThatNoArgumentMeetsAreSaidSo) {
  BufferRef out = make_buffer("out", kFloat32, MemoryScope::Param, {c(int64_t{1} << 40), c(int64_t{1} << 40)});
  Stmt body = for_loop(LoopKind::Serial, i_, c(int64_t{1} << 40), store(out, {i, c(0)}, float_imm(0, kFloat32)));
  IndexBounds bounds(function({}, {out}, kernel({b_}, {c(1)}, 128, body)));
  EXPECT_EQ(texts(bounds), std::vector<std::string>{"none"});
  EXPECT_FALSE(bounds.address_fits64(*out, {i, c(0)}));
}

class Random {
 public:
  explicit Random(uint64_t seed) : random_(seed) {}
  int64_t pick(int64_t low, int64_t high) {
    const uint64_t span = static_cast<uint64_t>(high) - static_cast<uint64_t>(low) + 1;  // 0: all of them
    return static_cast<int64_t>(static_cast<uint64_t>(low) + (span ? random_() % span : random_()));
  }

  Expr index(const std::vector<Expr>& leaves, int depth) {
    if (depth == 0 || pick(0, 4) == 0)
      return pick(0, 3) == 0 ? c(pick(-40, 1 << 20))
                             : leaves[static_cast<size_t>(pick(0, static_cast<int64_t>(leaves.size()) - 1))];
    auto sub = [&] { return index(leaves, depth - 1); };
    switch (pick(0, 15)) {
      case 0:
      case 1:
      case 2: return sub() + sub();
      case 3: return sub() - sub();
      case 4:
      case 5: return sub() * sub();
      case 6: return floor_div(sub(), c(pick(0, 1) == 0 ? pick(1, 64) : -pick(1, 9)));
      case 7: return floor_mod(sub(), c(pick(1, 64)));
      case 8: return min(sub(), sub());
      case 9: return max(sub(), sub());
      case 10: return select(less(sub(), sub()), sub(), sub());
      case 11: return apply(Op::ShiftLeft, {pick(0, 1) == 0 ? c(1) : sub(), pick(0, 2) == 0 ? c(pick(0, 70)) : sub()});
      case 12: return apply(Op::ShiftRight, {sub(), pick(0, 1) == 0 ? c(pick(0, 70)) : sub()});
      case 13: return apply(pick(0, 1) == 0 ? Op::BitAnd : Op::BitOr, {sub(), sub()});
      case 14: return pick(0, 1) == 0 ? apply(Op::BitXor, {sub(), sub()}) : apply(Op::BitNot, {sub()});
      default: return apply(Op::Abs, {sub()});
    }
  }

  std::mt19937_64 random_;
};

TEST(BoundsFuzz, WhatIsSaidToFitFits) {
  Random random(5);
  int held = 0, refused = 0, fitted = 0, eased = 0;
  for (int round = 0; round < 1500; ++round) {
    const VarRef M = make_var("M"), N = make_var("N"), n = make_var("n"), b = make_var("b"), i = make_var("i"),
                 j = make_var("j"), v = make_var("v");
    const std::vector<Expr> outer = {Expr(M), Expr(N), Expr(n)};
    BufferRef out = make_buffer("out", kFloat32, MemoryScope::Param, {Expr(M), Expr(N)});
    const Expr grid = random.index(outer, 1), begin = random.index({Expr(M), Expr(n), Expr(b)}, 1),
               extent = random.index({Expr(N), Expr(b)}, 1);
    const Expr value = random.index({Expr(M), Expr(N), Expr(n), Expr(b), Expr(i)}, 2);
    const Expr row = random.index({Expr(N), Expr(b), Expr(i), Expr(v)}, 2),
               column = random.index({Expr(i), Expr(v), Expr(j)}, 2);
    const Expr guard = less(random.index({Expr(b), Expr(i), Expr(j)}, 1), random.index(outer, 1));
    const Stmt access = if_then(guard, store(out, {row, column}, float_imm(0, kFloat32)));
    Stmt inner = seq({bind(v, value), for_loop(LoopKind::Serial, {j}, {Expr(i)}, {c(8)}, access)});
    Stmt body = for_loop(LoopKind::Serial, {i}, {begin}, {extent}, inner);
    const FunctionRef f = function({M, N}, {out, n}, kernel({b}, {grid}, 128, body));
    const IndexBounds bounds(f);
    for (int sample = 0; sample < 30; ++sample) {
      auto large = [&] { return Wide{random.pick(0, (int64_t{1} << random.pick(0, 45)) - 1)}; };
      Assignment at{{M.get(), large()}, {N.get(), large()}, {n.get(), random.pick(0, 1) == 0 ? large() : -large()}};
      bool holds = true;
      for (const IndexRequirement& each : bounds.requirements()) {
        const Wide reach = each.reach ? evaluate(expr_of(*each.reach), at).value_or(-1) : -1;
        holds = holds && reach <= kMax && reach >= 0;
      }
      ++(holds ? held : refused);
      if (!holds) continue;
      auto inside = [&](const VarRef& var, const Expr& from, const Expr& count) {  // a value of the loop's variable
        const std::optional<Wide> first = evaluate(from, at), size = evaluate(count, at);
        if (!first || !size || *size <= 0) return false;
        const Wide offset = random.pick(0, 3) == 0 ? *size - 1 : *size * random.pick(0, 999) / 1000;
        at[var.get()] = *first + offset;
        return true;
      };
      const std::optional<Wide> blocks = evaluate(grid, at);
      if (!blocks || *blocks > kMax) continue;  // the host computes the grid, exactly
      if (!inside(b, c(0), grid) || !inside(i, begin, extent) || !inside(j, Expr(i), c(8))) continue;
      const std::optional<Wide> bound = evaluate(value, at);
      if (!bound) continue;
      at[v.get()] = *bound;
      const std::optional<Wide> taken = evaluate(guard, at);
      auto check = [&](const Expr& whole, bool computed) {
        walk(whole, [&](const Expr& e) {
          if (!e->dtype.is_index()) return;
          const std::optional<Wide> exact = evaluate(e, at);
          if (!exact) return;
          const bool said = bounds.fits64(e);
          ++(said ? fitted : eased);
          if (!said && !computed) return;
          EXPECT_TRUE(*exact >= kMin && *exact <= kMax) << to_text(e);
          if (bounds.fits32(e)) {
            EXPECT_TRUE(*exact >= INT32_MIN && *exact <= INT32_MAX) << to_text(e);
          }
        });
      };
      for (const Expr& e : {value, Expr(i), Expr(j)}) check(e, true);
      for (const Expr& e : {row, column}) check(e, taken && *taken != 0);
      const std::optional<Wide> r = evaluate(row, at), k = evaluate(column, at);
      if (r && k && bounds.address_fits64(*out, {row, column})) {
        const Wide bytes = (*r * at[N.get()] + *k) * 4;
        EXPECT_TRUE(bytes >= kMin && bytes <= kMax);
      }
      if (::testing::Test::HasFailure()) return;
    }
  }
  EXPECT_GT(held, 4000);
  EXPECT_GT(refused, 1000);
  EXPECT_GT(fitted, 20000);
  EXPECT_GT(eased, 0);
  EXPECT_LT(eased, fitted / 4);  // what guards and loops' ends bound closer is not said to fit
}

}  // namespace
}  // namespace helve
