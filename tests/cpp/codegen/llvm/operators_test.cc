// Every operator on every dtype, in scalar and in vector code, against a scalar oracle.
// The optimiser sees both forms; a wrong pattern shows at the corner values, not in the middle.
#include <bit>
#include <cmath>
#include <limits>

#include "run_kernel.h"

namespace helve::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
const double kNan = std::numeric_limits<double>::quiet_NaN();

std::vector<DType> float_types() {
  return {kFloat64,
          kFloat32,
          {TypeCode::Float, 16},
          {TypeCode::BFloat, 16},
          {TypeCode::Float8E4M3, 8},
          {TypeCode::Float8E5M2, 8}};
}
std::vector<DType> integer_types() {
  std::vector<DType> out{kIndex};
  for (uint8_t bits : {8, 16, 32, 64}) {
    out.push_back({TypeCode::Int, bits});
    out.push_back({TypeCode::UInt, bits});
  }
  return out;
}

/// Runs out[i] = op(in0[i], in1[i], ...) over `count` elements, serially or in lanes of `lanes`.
Cells map_elements(const std::function<Expr(const std::vector<Expr>&)>& make, DType out_type,
                   std::vector<std::pair<DType, Cells*>> inputs, int64_t count, int64_t lanes, bool native = true) {
  HELVE_CHECK(count % lanes == 0, "lanes must divide the count");
  Arguments arguments;
  std::vector<BufferRef> buffers;
  for (auto& [t, cells] : inputs) {
    buffers.push_back(param("in", t, {idx(count)}));
    arguments.buffers[buffers.back().get()] = cells->data();
  }
  BufferRef out = param("out", out_type, {idx(count)});
  Cells result(out_type, static_cast<size_t>(count));
  arguments.buffers[out.get()] = result.data();
  VarRef i = make_var("i"), l = make_var("l");
  auto body = [&](const Expr& at) {
    std::vector<Expr> args;
    for (const BufferRef& b : buffers) args.push_back(load(b, {at}));
    return store(out, {at}, make(args));
  };
  Stmt loops = lanes == 1
                   ? for_loop(LoopKind::Serial, i, idx(count), body(Expr(i)))
                   : for_loop(LoopKind::Serial, i, idx(count / lanes),
                              for_loop(LoopKind::Vectorized, l, idx(lanes), body(Expr(i) * idx(lanes) + Expr(l))));
  // Explicit vectors need no optimiser to be tried; serial loops are vectorised by it, for one width of elements.
  const bool optimized = lanes == 1 && (out_type.bits == 32 || out_type.is_bool());
  run(single(loops), arguments, false, CpuOptions{.optimization = optimized ? 3 : 1, .native = native});
  return result;
}

std::vector<double> float_corners(DType t) {
  std::vector<double> out{0.0, -0.0, 1.0, -1.0, 0.5, -0.5, 1.5, 2.5, -2.5, 3.0, 0.1, -7.25, 100.0, kInf, -kInf, kNan};
  for (double v : {1e-3, 1e-6, 1e-40, 6e-8, 65504.0, 448.0, -57344.0, 3e38, 1e300, -1e300}) out.push_back(v);
  for (double& v : out) v = round_to(v, t);
  return out;
}

std::vector<int64_t> integer_corners(DType t) {
  std::vector<int64_t> out{0, 1, 2, 3, 5, 7, -1, -2, -3, -7, 100, 127, -128, 255, 64, 63, 31, 8};
  if (!t.is_index()) {
    out.push_back(extreme_int(t, true));
    out.push_back(extreme_int(t, false));
  }
  for (int64_t& v : out) v = wrap_to(v, t);
  return out;
}

int64_t floor_div_oracle(int64_t a, int64_t b, DType t) {
  if (b == 0) return 0;
  if (!t.is_signed()) return wrap_to(static_cast<int64_t>(static_cast<uint64_t>(a) / static_cast<uint64_t>(b)), t);
  const __int128 wide_a = a, wide_b = b;
  __int128 q = wide_a / wide_b;
  if (wide_a % wide_b != 0 && (wide_a < 0) != (wide_b < 0)) --q;
  return wrap_to(static_cast<int64_t>(q), t);
}

std::optional<int64_t> integer_oracle(Op op, int64_t a, int64_t b, DType t) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  const bool s = t.is_signed();
  const bool out_of_width = ub >= t.bits;
  auto wrap = [&](uint64_t v) { return wrap_to(static_cast<int64_t>(v), t); };
  switch (op) {
    case Op::Add: return wrap(ua + ub);
    case Op::Sub: return wrap(ua - ub);
    case Op::Mul: return wrap(ua * ub);
    case Op::FloorDiv: return floor_div_oracle(a, b, t);
    case Op::FloorMod: return b == 0 ? 0 : wrap(ua - static_cast<uint64_t>(floor_div_oracle(a, b, t)) * ub);
    case Op::Neg: return wrap(-ua);
    case Op::Min: return s ? std::min(a, b) : static_cast<int64_t>(std::min(ua, ub));
    case Op::Max: return s ? std::max(a, b) : static_cast<int64_t>(std::max(ua, ub));
    case Op::Lt: return s ? a < b : ua < ub;
    case Op::Le: return s ? a <= b : ua <= ub;
    case Op::Gt: return s ? a > b : ua > ub;
    case Op::Ge: return s ? a >= b : ua >= ub;
    case Op::Eq: return a == b;
    case Op::Ne: return a != b;
    case Op::BitAnd: return wrap(ua & ub);
    case Op::BitOr: return wrap(ua | ub);
    case Op::BitXor: return wrap(ua ^ ub);
    case Op::BitNot: return wrap(~ua);
    case Op::ShiftLeft: return out_of_width ? 0 : wrap(ua << ub);
    case Op::ShiftRight:
      if (out_of_width) return s && a < 0 ? -1 : 0;
      return s ? a >> ub : wrap(ua >> ub);
    case Op::Abs: return s && a < 0 ? wrap(-ua) : a;
    case Op::Select: return a;
    default: return std::nullopt;
  }
}

void check_integer_operator(const OpRow& row, DType t, int64_t lanes) {
  const std::vector<int64_t> corners = integer_corners(t);
  const size_t n = corners.size(), count = n * n;
  Cells a(t, count), b(t, count);
  for (size_t k = 0; k < count; ++k) {
    a.set_bits(k, static_cast<uint64_t>(corners[k / n]));
    b.set_bits(k, static_cast<uint64_t>(corners[k % n]));
  }
  const bool gives_bool = row.rule == OpRule::Compare;
  const DType out = gives_bool ? kBool : t;
  Cells got = map_elements(
      [&](const std::vector<Expr>& x) {
        if (row.op == Op::Select) return select(apply(Op::Eq, {x[0], x[0]}), x[0], x[1]);
        return row.arity == 1 ? apply(row.op, {x[0]}) : apply(row.op, {x[0], x[1]});
      },
      out, {{t, &a}, {t, &b}}, static_cast<int64_t>(count), lanes);
  for (size_t k = 0; k < count; ++k) {
    const int64_t x = a.integer(k), y = b.integer(k);
    const auto want = integer_oracle(row.op, x, y, t);
    ASSERT_TRUE(want);
    ASSERT_EQ(got.integer(k), *want) << row.name << " " << to_string(t) << " " << x << ", " << y << " lanes " << lanes;
  }
}

TEST(Operators, IntegersMatchTheOracle) {
  int checked = 0;
  for (const OpRow& row : operator_rows()) {
    if (!integer_oracle(row.op, 1, 1, kInt32)) continue;
    for (DType t : integer_types()) {
      for (int64_t lanes : {1, 4}) check_integer_operator(row, t, lanes);
      ++checked;
    }
  }
  EXPECT_EQ(checked, 22 * 9);
}

/// Divisors known at compile time take other paths.
TEST(Operators, DivisionByConstants) {
  for (DType t : integer_types()) {
    for (int64_t d : {1, 2, 3, 7, 8, 64, -1, -2, -3, -8}) {
      if (wrap_to(d, t) != d) continue;
      const std::vector<int64_t> corners = integer_corners(t);
      Cells a(t, corners.size());
      for (size_t k = 0; k < corners.size(); ++k) a.set_bits(k, static_cast<uint64_t>(corners[k]));
      for (Op op : {Op::FloorDiv, Op::FloorMod}) {
        Cells got = map_elements([&](const std::vector<Expr>& x) { return apply(op, {x[0], int_imm(d, t)}); }, t,
                                 {{t, &a}}, static_cast<int64_t>(corners.size()), 1);
        for (size_t k = 0; k < corners.size(); ++k) {
          ASSERT_EQ(got.integer(k), *integer_oracle(op, a.integer(k), d, t))
              << to_string(t) << " " << a.integer(k) << " by " << d;
        }
      }
    }
  }
}

std::optional<double> float_oracle(Op op, double a, double b, double c, bool in_double) {
  auto f = [in_double](double v) { return in_double ? v : static_cast<double>(static_cast<float>(v)); };
  switch (op) {
    case Op::Add: return f(a + b);
    case Op::Sub: return f(a - b);
    case Op::Mul: return f(a * b);
    case Op::Div: return f(a / b);
    case Op::Neg: return -a;
    case Op::Min: return std::isnan(a) || std::isnan(b) ? kNan : a < b ? a : b;
    case Op::Max: return std::isnan(a) || std::isnan(b) ? kNan : a > b ? a : b;
    case Op::Lt: return a < b;
    case Op::Le: return a <= b;
    case Op::Gt: return a > b;
    case Op::Ge: return a >= b;
    case Op::Eq: return a == b;
    case Op::Ne: return a != b;
    case Op::Select: return a > b ? a : b;
    case Op::Abs: return std::fabs(a);
    case Op::Floor: return std::floor(a);
    case Op::Ceil: return std::ceil(a);
    case Op::Round: return std::nearbyint(a);
    case Op::Sqrt: return f(std::sqrt(a));
    case Op::Rsqrt: return f(1.0 / f(std::sqrt(a)));
    case Op::Fma:
      return in_double
                 ? std::fma(a, b, c)
                 : static_cast<double>(std::fma(static_cast<float>(a), static_cast<float>(b), static_cast<float>(c)));
    default: return std::nullopt;
  }
}

void expect_same(double got, double want, const std::string& what) {
  if (std::isnan(want)) {
    ASSERT_TRUE(std::isnan(got)) << what << " gave " << got;
  } else {
    ASSERT_EQ(std::bit_cast<uint64_t>(got), std::bit_cast<uint64_t>(want))
        << what << " gave " << got << ", not " << want;
  }
}

void check_float_operator(const OpRow& row, DType t, int64_t lanes) {
  const std::vector<double> corners = float_corners(t);
  const size_t n = corners.size(), count = n * n;
  Cells a(t, count), b(t, count);
  for (size_t k = 0; k < count; ++k) {
    a.set(k, corners[k / n]);
    b.set(k, corners[k % n]);
  }
  const bool gives_bool = row.rule == OpRule::Compare;
  Cells got = map_elements(
      [&](const std::vector<Expr>& x) {
        if (row.op == Op::Select) return select(apply(Op::Gt, {x[0], x[1]}), x[0], x[1]);
        const Expr all[] = {x[0], x[1], x[0]};
        return apply(row.op, std::vector<Expr>(all, all + row.arity));
      },
      gives_bool ? kBool : t, {{t, &a}, {t, &b}}, static_cast<int64_t>(count), lanes);
  for (size_t k = 0; k < count; ++k) {
    const double x = a.real(k), y = b.real(k);
    const double want = *float_oracle(row.op, x, y, x, t == kFloat64);
    const std::string what = std::string(row.name) + " " + to_string(t) + " of " + std::to_string(x) + ", " +
                             std::to_string(y) + " lanes " + std::to_string(lanes);
    if (gives_bool) {
      ASSERT_EQ(got.integer(k), static_cast<int64_t>(want)) << what;
    } else {
      ASSERT_NO_FATAL_FAILURE(expect_same(got.real(k), round_to(want, t), what));
    }
  }
}

TEST(Operators, FloatsMatchTheOracle) {
  int checked = 0;
  for (const OpRow& row : operator_rows()) {
    if (!float_oracle(row.op, 1, 1, 1, true)) continue;
    for (DType t : float_types()) {
      for (int64_t lanes : {1, 4}) ASSERT_NO_FATAL_FAILURE(check_float_operator(row, t, lanes));
      ++checked;
    }
  }
  EXPECT_EQ(checked, 21 * 6);
}

TEST(Operators, Logic) {
  Cells a(kBool, 4), b(kBool, 4);
  for (size_t k = 0; k < 4; ++k) {
    a.set_bits(k, k / 2);
    b.set_bits(k, k % 2);
  }
  for (int64_t lanes : {1, 4}) {
    auto check = [&](auto make, auto want) {
      Cells got = map_elements(make, kBool, {{kBool, &a}, {kBool, &b}}, 4, lanes);
      for (size_t k = 0; k < 4; ++k) EXPECT_EQ(got.bits(k), static_cast<uint64_t>(want(k / 2 != 0, k % 2 != 0)));
    };
    using X = const std::vector<Expr>&;
    check([](X x) { return apply(Op::And, {x[0], x[1]}); }, [](bool p, bool q) { return p && q; });
    check([](X x) { return apply(Op::Or, {x[0], x[1]}); }, [](bool p, bool q) { return p || q; });
    check([](X x) { return apply(Op::Not, {x[0]}); }, [](bool p, bool) { return !p; });
    check([](X x) { return apply(Op::Ne, {x[0], x[1]}); }, [](bool p, bool q) { return p != q; });
    check([](X x) { return apply(Op::Lt, {x[0], x[1]}); }, [](bool p, bool q) { return p < q; });
    check([](X x) { return select(x[0], x[1], apply(Op::Not, {x[1]})); }, [](bool p, bool q) { return p ? q : !q; });
  }
}

/// Every code of every small float, widened; and the values around every rounding boundary, narrowed from both widths.
TEST(Conversions, SmallFloatsRoundAsTheLawSays) {
  for (DType t : float_types()) {
    if (!t.is_small_float()) continue;
    const size_t codes = size_t{1} << t.bits;
    Cells all(t, codes);
    for (size_t k = 0; k < codes; ++k) all.set_bits(k, k);
    for (bool native : {true, false}) {
      Cells wide = map_elements([](const std::vector<Expr>& x) { return cast(x[0], kFloat32); }, kFloat32, {{t, &all}},
                                static_cast<int64_t>(codes), native ? 16 : 1, native);
      for (size_t k = 0; k < codes; ++k)
        ASSERT_NO_FATAL_FAILURE(expect_same(wide.real(k), all.real(k), to_string(t) + " widened"));
    }
    for (DType from : {kFloat32, kFloat64}) {
      std::vector<double> values{1e-46, -1e-46, 1e-300,  1e300,   -1e300,  3.4e38, 464.0,
                                 465.0, 463.9,  65519.9, 65520.0, 61439.0, 61440.0};
      for (size_t k = 0; k + 1 < codes; ++k) {
        const double x = all.real(k), y = all.real(k + 1);
        if (!std::isfinite(x) || !std::isfinite(y)) {
          values.push_back(x);
          continue;
        }
        const double middle = (x + y) / 2;
        for (double v : {x, middle, std::nextafter(static_cast<float>(middle), -1e38f) * 1.0,
                         std::nextafter(static_cast<float>(middle), 1e38f) * 1.0, std::nextafter(middle, -kInf),
                         std::nextafter(middle, kInf)}) {
          values.push_back(v);
        }
      }
      while (values.size() % 16) values.push_back(0.0);
      Cells in(from, values.size());
      for (size_t k = 0; k < values.size(); ++k) in.set(k, values[k]);
      for (bool native : {true, false}) {
        Cells got = map_elements([&](const std::vector<Expr>& x) { return cast(x[0], t); }, t, {{from, &in}},
                                 static_cast<int64_t>(values.size()), native ? 16 : 1, native);
        for (size_t k = 0; k < values.size(); ++k) {
          const double x = in.real(k);
          ASSERT_NO_FATAL_FAILURE(expect_same(got.real(k), round_to(x, t),
                                              to_string(from) + " to " + to_string(t) + " of " + std::to_string(x)));
        }
      }
    }
  }
}

TEST(Conversions, CastsBetweenAllKinds) {
  std::vector<DType> types = integer_types();
  for (DType t : float_types()) types.push_back(t);
  types.push_back(kBool);
  for (DType from : types) {
    const bool real = from.is_float();
    const std::vector<double> reals = real ? float_corners(from) : std::vector<double>{};
    const std::vector<int64_t> integers = from.is_bool() ? std::vector<int64_t>{0, 1}
                                          : real         ? std::vector<int64_t>{}
                                                         : integer_corners(from);
    const size_t count = real ? reals.size() : integers.size();
    Cells in(from, count);
    for (size_t k = 0; k < count; ++k) real ? in.set(k, reals[k]) : in.set_bits(k, static_cast<uint64_t>(integers[k]));
    for (DType to : types) {
      Cells got = map_elements([&](const std::vector<Expr>& x) { return cast(x[0], to); }, to, {{from, &in}},
                               static_cast<int64_t>(count), 1);
      for (size_t k = 0; k < count; ++k) {
        const std::string what = to_string(from) + " to " + to_string(to) + " element " + std::to_string(k);
        if (to.is_float()) {
          double v = 0;
          if (real)
            v = in.real(k);
          else
            v = from.code == TypeCode::UInt ? static_cast<double>(static_cast<uint64_t>(in.integer(k)))
                                            : static_cast<double>(in.integer(k));
          ASSERT_NO_FATAL_FAILURE(expect_same(got.real(k), round_to(v, to), what));
          continue;
        }
        int64_t want = 0;
        if (to.is_bool()) {
          want = real ? !(in.real(k) == 0) : in.integer(k) != 0;
        } else if (real) {
          const double v = std::trunc(in.real(k));
          const bool s = to.is_signed();
          const double low = s ? -std::ldexp(1.0, to.bits - 1) : 0, high = std::ldexp(1.0, s ? to.bits - 1 : to.bits);
          want = std::isnan(v) ? 0
                 : v < low     ? (to.is_index() ? std::numeric_limits<int64_t>::min() : extreme_int(to, true))
                 : v >= high   ? (to.is_index() ? std::numeric_limits<int64_t>::max() : extreme_int(to, false))
                 : s           ? static_cast<int64_t>(v)
                               : static_cast<int64_t>(static_cast<uint64_t>(v));
        } else {
          want = wrap_to(in.integer(k), to);
        }
        ASSERT_EQ(got.integer(k), want) << what;
      }
    }
  }
}

TEST(Conversions, PackedTypesAreRefused) {
  const DType int4{TypeCode::Int, 4};
  BufferRef a = param("a", int4, {idx(4)}), out = param("out", kInt32, {idx(4)});
  Stmt k = single(store(out, {idx(0)}, cast(load(a, {idx(0)}), kInt32)));
  try {
    compile_cpu({{"k", as_kernel(k)}});
    FAIL() << "int4 was compiled";
  } catch (const UserError& e) {
    EXPECT_EQ(e.diagnostic().code, Code::DTypeOnTarget);
    EXPECT_EQ(e.diagnostic().message(), "target 'llvm' has no code for int4");
  }
}

double ulps(float got, double want) {
  const float nearest = static_cast<float>(want);
  if (std::isinf(nearest) || std::isinf(got)) return nearest == got ? 0 : kInf;
  int exponent;
  std::frexp(nearest, &exponent);
  const double unit = std::ldexp(1.0, std::max(exponent - 24, -149));
  return std::fabs(got - want) / unit;
}

/// A dense sample of all float32 codes.
TEST(MathFunctions, WithinTwoUlpOnASampleOfAllFloats) {
  struct Function {
    Op op;
    double (*exact)(double);
    double limit;
  };
  const Function functions[] = {
      {Op::Exp, [](double x) { return std::exp(x); }, 2.0},
      {Op::Exp2, [](double x) { return std::exp2(x); }, 2.0},
      {Op::Exp2Approx, [](double x) { return std::exp2(x); }, 2.0},
      {Op::Log, [](double x) { return std::log(x); }, 2.0},
      {Op::Tanh, [](double x) { return std::tanh(x); }, 2.0},
      {Op::Log2, [](double x) { return std::log2(x); }, 2.0},
      {Op::Sin, [](double x) { return std::sin(x); }, 2.0},
      {Op::Cos, [](double x) { return std::cos(x); }, 2.0},
      {Op::Erf, [](double x) { return std::erf(x); }, 2.0},
      {Op::Sigmoid, [](double x) { return std::exp(std::min(x, 0.0)) / (1.0 + std::exp(-std::fabs(x))); }, 3.0},
  };
  const size_t count = size_t{1} << 20;
  Cells in(kFloat32, count);
  for (size_t k = 0; k < count; ++k)
    in.set_bits(k, (k * 4093 + k % 16) & 0xffffffff);  // odd step: all exponents, both signs
  const double widths[] = {220.0, 12.0, 2.6};
  // Arguments of ordinary size deserve a denser look than the exponents give them.
  for (size_t k = 0; k < count / 2; ++k) in.set(k * 2, (static_cast<double>(k) / (count / 2) - 0.5) * widths[k % 3]);
  const float special[] = {0.0f,      -0.0f,    INFINITY, -INFINITY, NAN,     88.72283f, 88.7229f,
                           -103.972f, -103.98f, -87.34f,  1e-45f,    -1e-45f, 0.625f,    0.875f,
                           3.9f,      4.0f,     -5.0f,    128.0f,    -149.0f, -149.6f,   1.0f};
  for (size_t k = 0; k < std::size(special); ++k) in.set(k, special[k]);
  for (const Function& f : functions) {
    for (bool native : {true, false}) {  // without fused multiply-add the reductions must be as exact
      Cells got = map_elements([&](const std::vector<Expr>& x) { return apply(f.op, {x[0]}); }, kFloat32,
                               {{kFloat32, &in}}, static_cast<int64_t>(count), 16, native);
      double worst = 0;
      for (size_t k = 0; k < count; ++k) {
        const double x = in.real(k), want = f.exact(x);
        const auto y = static_cast<float>(got.real(k));
        if (std::isnan(want)) {
          ASSERT_TRUE(std::isnan(y)) << row_of(f.op).name << " of " << x;
          continue;
        }
        ASSERT_EQ(std::signbit(y), std::signbit(want)) << row_of(f.op).name << " of " << x << " gave " << y;
        const double error = ulps(y, want);
        ASSERT_LE(error, f.limit) << row_of(f.op).name << " of " << x << " gave " << y << ", not " << want;
        worst = std::max(worst, error);
      }
      RecordProperty(std::string(row_of(f.op).name) + (native ? "" : "Baseline"), std::to_string(worst));
    }
  }
}

TEST(MathFunctions, ScalarAndVectorCodeGiveTheSameBits) {
  const size_t count = 4096;
  Cells in(kFloat32, count);
  for (size_t k = 0; k < count; ++k) in.set_bits(k, k * 1048583 & 0xffffffff);
  for (Op op : {Op::Exp, Op::Exp2, Op::Log, Op::Log2, Op::Tanh, Op::Erf, Op::Sigmoid}) {
    auto make = [&](const std::vector<Expr>& x) { return apply(op, {x[0]}); };
    Cells scalar = map_elements(make, kFloat32, {{kFloat32, &in}}, count, 1);
    Cells vector = map_elements(make, kFloat32, {{kFloat32, &in}}, count, 32);
    for (size_t k = 0; k < count; ++k) {
      if (std::isnan(scalar.real(k)) && std::isnan(vector.real(k))) continue;
      ASSERT_EQ(scalar.bits(k), vector.bits(k)) << row_of(op).name << " of " << in.real(k);
    }
  }
}

TEST(MathFunctions, DoublesUseTheLibrary) {
  const std::vector<double> values{-3.5, -0.25, 0.0, 0.5, 1.0, 2.75, 10.0, 700.0, 710.0};
  Cells in(kFloat64, values.size());
  for (size_t k = 0; k < values.size(); ++k) in.set(k, values[k]);
  const std::pair<Op, double (*)(double)> functions[] = {
      {Op::Exp, std::exp}, {Op::Exp2, std::exp2}, {Op::Log, std::log},   {Op::Log2, std::log2},
      {Op::Sin, std::sin}, {Op::Cos, std::cos},   {Op::Tanh, std::tanh}, {Op::Erf, std::erf},
  };
  for (const auto& [op, exact] : functions) {
    Cells got = map_elements([op = op](const std::vector<Expr>& x) { return apply(op, {x[0]}); }, kFloat64,
                             {{kFloat64, &in}}, static_cast<int64_t>(values.size()), 1);
    for (size_t k = 0; k < values.size(); ++k) expect_same(got.real(k), exact(values[k]), std::string(row_of(op).name));
  }
  Cells power = map_elements([](const std::vector<Expr>& x) { return apply(Op::Pow, {x[0], x[0]}); }, kFloat64,
                             {{kFloat64, &in}}, static_cast<int64_t>(values.size()), 3);
  for (size_t k = 0; k < values.size(); ++k) expect_same(power.real(k), std::pow(values[k], values[k]), "pow");
}

}  // namespace
}  // namespace helve::testing
