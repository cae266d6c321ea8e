// Every scalar operator and conversion against its definition.
#include <cmath>
#include <limits>

#include "arrays.h"
#include "helve/ir/expr/rounding.h"

namespace helve::testing {
namespace {

constexpr DType kInt8{TypeCode::Int, 8};
constexpr DType kUInt8{TypeCode::UInt, 8};
constexpr DType kUInt64{TypeCode::UInt, 64};
constexpr DType kHalf{TypeCode::Float, 16};
constexpr DType kBFloat16{TypeCode::BFloat, 16};
constexpr DType kE4M3{TypeCode::Float8E4M3, 8};
const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

int floor_quotient(int a, int b) { return static_cast<int>(std::floor(static_cast<double>(a) / b)); }

/// What `op` means on mathematical integers; modulo 256 it is the result on 8 bits.
int meaning(Op op, int a, int b) {
  switch (op) {
    case Op::Add: return a + b;
    case Op::Sub: return a - b;
    case Op::Mul: return a * b;
    case Op::FloorDiv: return floor_quotient(a, b);
    case Op::FloorMod: return a - b * floor_quotient(a, b);
    case Op::Min: return std::min(a, b);
    case Op::Max: return std::max(a, b);
    case Op::BitAnd: return a & b;
    case Op::BitOr: return a | b;
    case Op::BitXor: return a ^ b;
    case Op::ShiftLeft: return b >= 8 ? 0 : a * (1 << b);
    case Op::ShiftRight: return b >= 8 ? (a < 0 ? -1 : 0) : floor_quotient(a, 1 << b);
    case Op::Lt: return a < b;
    case Op::Le: return a <= b;
    case Op::Gt: return a > b;
    case Op::Ge: return a >= b;
    case Op::Eq: return a == b;
    case Op::Ne: return a != b;
    default: throw std::logic_error("no meaning here");
  }
}

/// All pairs of 8-bit operands with the right one from `low_b` on, 0 left out for divisions.
template <class T>
void check_all_pairs(Op op, DType dtype, int low_b) {
  const int low = std::numeric_limits<T>::min();
  const bool divides = op == Op::FloorDiv || op == Op::FloorMod;
  const VarRef i = make_var("i"), j = make_var("j");
  const int count_b = std::numeric_limits<T>::max() - low_b + 1;
  const Expr a = cast(Expr(i) + idx(low), dtype), b = cast(Expr(j) + idx(low_b), dtype);
  const Expr value = apply(op, {a, b});
  const BufferRef out = param("out", value->dtype, {256, count_b});
  const Stmt set = store(out, {i, j}, value);
  const Stmt body = divides ? if_then(apply(Op::Ne, {b, int_imm(0, dtype)}), set) : set;
  const FunctionRef f = function("main", {out}, one_block({serial(i, idx(256), {serial(j, idx(count_b), {body})})}));
  const std::vector<T> got = output_of<T>(f, {256, count_b});
  for (int x = 0; x < 256; ++x) {
    for (int y = 0; y < count_b; ++y) {
      if (divides && y + low_b == 0) continue;
      const T expected = static_cast<T>(meaning(op, x + low, y + low_b));
      ASSERT_EQ(got[static_cast<size_t>(x * count_b + y)], expected)
          << row_of(op).name << " " << x + low << " " << y + low_b;
    }
  }
}

TEST(Operators, AllPairsOfEightBitIntegers) {
  for (Op op : {Op::Add, Op::Sub, Op::Mul, Op::FloorDiv, Op::FloorMod, Op::Min, Op::Max, Op::BitAnd, Op::BitOr,
                Op::BitXor, Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne}) {
    check_all_pairs<int8_t>(op, kInt8, -128);
    check_all_pairs<uint8_t>(op, kUInt8, 0);
  }
  for (Op op : {Op::ShiftLeft, Op::ShiftRight}) {
    check_all_pairs<int8_t>(op, kInt8, 0);
    check_all_pairs<uint8_t>(op, kUInt8, 0);
  }
}

TEST(Operators, UnaryEightBitIntegersWrap) {
  for (int v = -128; v < 128; ++v) {
    const Expr e = cast(Expr(make_ref<Cast>(kInt8, idx(v))), kInt8);
    EXPECT_EQ(value_of<int8_t>(apply(Op::Neg, {e})), static_cast<int8_t>(-v));
    EXPECT_EQ(value_of<int8_t>(apply(Op::Abs, {e})), static_cast<int8_t>(v < 0 ? -v : v));
    EXPECT_EQ(value_of<int8_t>(apply(Op::BitNot, {e})), static_cast<int8_t>(~v));
  }
}

TEST(Operators, SixtyFourBitIntegersWrapAndCompareBySign) {
  const Expr least = int_imm(std::numeric_limits<int64_t>::min(), kInt64);
  EXPECT_EQ(value_of<int64_t>(least - int_imm(1, kInt64)), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(value_of<int64_t>(floor_div(least, int_imm(-1, kInt64))), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(value_of<int64_t>(floor_mod(least, int_imm(-1, kInt64))), 0);
  const Expr most = int_imm(-1, kUInt64), two = int_imm(2, kUInt64);
  EXPECT_EQ(value_of<uint64_t>(floor_div(most, two)), 0x7fffffffffffffffu);
  EXPECT_EQ(value_of<uint64_t>(floor_mod(most, int_imm(10, kUInt64))), 5u);
  EXPECT_EQ(value_of<uint64_t>(max(most, two)), ~uint64_t{0});
  EXPECT_EQ(value_of<uint8_t>(less(two, most)), 1);
  EXPECT_EQ(value_of<uint64_t>(apply(Op::ShiftRight, {most, int_imm(63, kUInt64)})), 1u);
  EXPECT_EQ(value_of<uint64_t>(apply(Op::ShiftRight, {most, int_imm(64, kUInt64)})), 0u);
  EXPECT_EQ(value_of<uint64_t>(apply(Op::ShiftLeft, {most, int_imm(63, kUInt64)})), uint64_t{1} << 63);
}

TEST(Operators, IndexIsExactOrRefused) {
  const Expr big = idx(int64_t{1} << 62);
  EXPECT_EQ(value_of<int64_t>(big + (big - idx(1))), std::numeric_limits<int64_t>::max());
  EXPECT_EQ(value_of<int64_t>(apply(Op::ShiftLeft, {idx(-1), idx(63)})), std::numeric_limits<int64_t>::min());
  const Expr least = apply(Op::ShiftLeft, {idx(-1), idx(63)});
  for (const Expr& e :
       {big + big, big * idx(2), least - idx(1), floor_div(least, idx(-1)), apply(Op::Abs, {least}),
        apply(Op::Neg, {least}), apply(Op::ShiftLeft, {idx(1), idx(63)}), apply(Op::ShiftLeft, {idx(3), idx(90)}),
        cast(int_imm(-1, kUInt64) + int_imm(0, kUInt64), kIndex)}) {
    try {
      value_of<int64_t>(e);
      ADD_FAILURE() << "an overflow was not refused";
    } catch (const UserError& error) {
      EXPECT_EQ(error.diagnostic().code, Code::IndexOverflow);
    }
  }
}

TEST(Operators, LogicDecidesEarly) {
  const BufferRef empty = param("empty", kBool, {0});
  const Expr fault = load(empty, {idx(0)});  // reading it would be out of bounds
  const Expr yes = bool_imm(true), no = bool_imm(false);
  const BufferRef out = param("out", kBool, {8});
  const std::vector<Expr> values = {
      apply(Op::And, {no, fault}), apply(Op::Or, {yes, fault}), apply(Op::And, {yes, yes}), apply(Op::And, {yes, no}),
      apply(Op::Or, {no, yes}),    apply(Op::Or, {no, no}),     select(no, fault, yes),     apply(Op::Not, {no})};
  std::vector<Stmt> stores;
  for (size_t i = 0; i < values.size(); ++i) stores.push_back(store(out, {idx(static_cast<int64_t>(i))}, values[i]));
  std::vector<uint8_t> got(8), none(1);
  interp::run(function("main", {out, empty}, one_block(stores)), {tensor(got, {8}), tensor(none, {0})});
  EXPECT_EQ(got, (std::vector<uint8_t>{0, 1, 1, 0, 1, 0, 1, 1}));
}

struct FloatRow {
  Op op;
  float (*f32)(float);
  double (*f64)(double);
};

TEST(Operators, FloatFunctionsAreThoseOfTheirWidth) {
  const FloatRow rows[] = {
      {Op::Floor, std::floor, std::floor},
      {Op::Ceil, std::ceil, std::ceil},
      {Op::Round, std::nearbyint, std::nearbyint},
      {Op::Exp, std::exp, std::exp},
      {Op::Exp2, std::exp2, std::exp2},
      {Op::Exp2Approx, std::exp2, std::exp2},
      {Op::Log, std::log, std::log},
      {Op::Log2, std::log2, std::log2},
      {Op::Sqrt, std::sqrt, std::sqrt},
      {Op::Sin, std::sin, std::sin},
      {Op::Cos, std::cos, std::cos},
      {Op::Tanh, std::tanh, std::tanh},
      {Op::Erf, std::erf, std::erf},
      {Op::Abs, std::fabs, std::fabs},
      {Op::Neg, [](float x) { return -x; }, [](double x) { return -x; }},
      {Op::Rsqrt, [](float x) { return 1.0f / std::sqrt(x); }, [](double x) { return 1.0 / std::sqrt(x); }},
      {Op::Sigmoid, [](float x) { return 1.0f / (1.0f + std::exp(-x)); },
       [](double x) { return 1.0 / (1.0 + std::exp(-x)); }},
  };
  for (const FloatRow& row : rows) {
    for (double x : {0.3, 2.5, 1e-3, 7.75}) {
      const float single = static_cast<float>(x);
      EXPECT_EQ(value_of<float>(apply(row.op, {f32(x)})), row.f32(single)) << row_of(row.op).name << " " << x;
      EXPECT_EQ(value_of<double>(apply(row.op, {float_imm(x, kFloat64)})), row.f64(x))
          << row_of(row.op).name << " " << x;
    }
  }
  EXPECT_EQ(value_of<float>(apply(Op::Pow, {f32(1.1), f32(2.3)})), std::pow(1.1f, 2.3f));
  EXPECT_EQ(value_of<float>(apply(Op::Fma, {f32(1.1), f32(2.3), f32(-2.53)})), std::fma(1.1f, 2.3f, -2.53f));
  EXPECT_EQ(value_of<float>(apply(Op::Div, {f32(1), f32(3)})), 1.0f / 3.0f);
  EXPECT_EQ(value_of<float>(f32(16777216) + f32(1)), 16777216.0f);
  EXPECT_EQ(value_of<double>(float_imm(16777216, kFloat64) + float_imm(1, kFloat64)), 16777217.0);
  EXPECT_EQ(value_of<float>(f32(0.1) * f32(0.1)), 0.1f * 0.1f);
  EXPECT_EQ(value_of<float>(f32(0.1) - f32(0.3)), 0.1f - 0.3f);
}

TEST(Operators, ExtremaPropagateNaN) {
  for (Op op : {Op::Min, Op::Max}) {
    EXPECT_TRUE(std::isnan(value_of<float>(apply(op, {f32(kNaN), f32(1)}))));
    EXPECT_TRUE(std::isnan(value_of<float>(apply(op, {f32(1), f32(kNaN)}))));
  }
  EXPECT_EQ(value_of<float>(max(f32(-2), f32(3))), 3.0f);
  EXPECT_EQ(value_of<float>(min(f32(-2), f32(-kInf))), -static_cast<float>(kInf));
  EXPECT_EQ(value_of<uint8_t>(apply(Op::Eq, {f32(kNaN), f32(kNaN)})), 0);
  EXPECT_EQ(value_of<uint8_t>(apply(Op::Ne, {f32(kNaN), f32(kNaN)})), 1);
  EXPECT_EQ(value_of<uint8_t>(apply(Op::Ge, {f32(kNaN), f32(1)})), 0);
}

TEST(Operators, SmallFloatsComputeInFloat32AndRoundAtStores) {
  const Expr one = float_imm(1, kBFloat16), tiny = float_imm(0.001953125, kBFloat16);  // 2^-9, below the spacing at 1
  EXPECT_EQ(value_of<float>(cast((one + tiny) - one, kFloat32)), 0.001953125f);
  EXPECT_EQ(value_of<uint16_t>(one + tiny), 0x3f80);
  EXPECT_EQ(value_of<float>(cast(cast(cast(one + tiny, kFloat32), kBFloat16), kFloat32)), 1.0f);
  EXPECT_EQ(value_of<uint16_t>(float_imm(65504, kHalf) + float_imm(65504, kHalf)), 0x7c00);
  EXPECT_EQ(value_of<uint8_t>(float_imm(448, kE4M3) * float_imm(2, kE4M3)), 0x7f);
}

TEST(Operators, AllSmallFloatsKeepTheirBits) {
  for (DType t : {kHalf, kBFloat16}) {
    const BufferRef in = param("in", t, {65536}), out = param("out", t, {65536});
    const VarRef i = make_var("i");
    const FunctionRef f =
        function("main", {in, out}, one_block({serial(i, idx(65536), {store(out, {i}, load(in, {i}))})}));
    std::vector<uint16_t> bits(65536), got(65536);
    for (size_t b = 0; b < 65536; ++b) bits[b] = static_cast<uint16_t>(b);
    interp::run(f, {tensor(bits, {65536}), tensor(got, {65536})});
    for (size_t b = 0; b < 65536; ++b) {
      if (std::isnan(float_value(b, t))) {
        EXPECT_TRUE(std::isnan(float_value(got[b], t)));
      } else {
        ASSERT_EQ(got[b], bits[b]);
      }
    }
  }
}

TEST(Conversions, BetweenKinds) {
  const Expr x = f32(-2.75);
  EXPECT_EQ(value_of<int8_t>(cast(x, kInt8)), -2);
  EXPECT_EQ(value_of<uint8_t>(cast(x, kUInt8)), 0);
  EXPECT_EQ(value_of<int8_t>(cast(f32(1000), kInt8)), 127);
  EXPECT_EQ(value_of<int8_t>(cast(f32(-kInf), kInt8)), -128);
  EXPECT_EQ(value_of<int8_t>(cast(f32(kNaN), kInt8)), 0);
  EXPECT_EQ(value_of<uint64_t>(cast(float_imm(1e19, kFloat64), kUInt64)), 10000000000000000000u);
  EXPECT_EQ(value_of<uint64_t>(cast(f32(kInf), kUInt64)), ~uint64_t{0});
  EXPECT_EQ(value_of<int64_t>(cast(f32(3.99), kIndex)), 3);
  EXPECT_EQ(value_of<uint8_t>(cast(f32(0.5), kBool)), 1);
  EXPECT_EQ(value_of<uint8_t>(cast(f32(-0.0), kBool)), 0);
  EXPECT_EQ(value_of<int32_t>(cast(less(idx(0), idx(1)), kInt32)), 1);
  const Expr many = Expr(make_ref<Cast>(kInt32, Expr(make_ref<Cast>(kInt64, idx((int64_t{1} << 40) + 5)))));
  EXPECT_EQ(value_of<int32_t>(many), 5);
  // 2^54 + 2^30 + 1 lies above the tie between two floats; rounding to double first would put it on the tie.
  const Expr above = int_imm((int64_t{1} << 54) + (int64_t{1} << 30) + 1, kInt64);
  EXPECT_EQ(value_of<float>(Expr(make_ref<Cast>(kFloat32, above))), 18014400656965632.0f);
  EXPECT_EQ(value_of<float>(Expr(make_ref<Cast>(kFloat32, int_imm(-1, kUInt64)))), 18446744073709551616.0f);
  EXPECT_EQ(value_of<double>(cast(f32(0.1), kFloat64)), static_cast<double>(0.1f));
}

}  // namespace
}  // namespace helve::testing
