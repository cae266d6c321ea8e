// The operators on floats, on data integers and on index.
// Floats compute in their own width, data integers wrap, index is exact or refused: three domains, one function an
// operator each.
#include "operators.h"

#include <cmath>

#include "helve/ir/expr/rounding.h"
#include "helve/support/diagnostic.h"

namespace helve::interp {

namespace {

// Floats. T is float for float32 and everything smaller, double for float64.

template <class T, auto F>
Scalar unary(const Scalar* a, const OpContext&) {
  return of_float(F(static_cast<T>(a[0].f)));
}

template <class T, auto F>
Scalar binary(const Scalar* a, const OpContext&) {
  return of_float(F(static_cast<T>(a[0].f), static_cast<T>(a[1].f)));
}

template <class T, auto F>
Scalar compare(const Scalar* a, const OpContext&) {
  return of_int(F(static_cast<T>(a[0].f), static_cast<T>(a[1].f)));
}

template <class T>
Scalar fused(const Scalar* a, const OpContext&) {
  return of_float(std::fma(static_cast<T>(a[0].f), static_cast<T>(a[1].f), static_cast<T>(a[2].f)));
}

/// Of the exponential that does not overflow, so that it ends where T does.
template <class T>
T sigmoid(T x) {
  const T e = std::exp(-std::fabs(x));
  return (x < 0 ? e : T{1}) / (T{1} + e);
}

/// Python's floor division and remainder are for integers only; on floats the table has none.
template <class T>
Operator float_operator(Op op) {
  switch (op) {
    case Op::Add: return binary<T, [](T a, T b) { return a + b; }>;
    case Op::Sub: return binary<T, [](T a, T b) { return a - b; }>;
    case Op::Mul: return binary<T, [](T a, T b) { return a * b; }>;
    case Op::Div: return binary<T, [](T a, T b) { return a / b; }>;
    case Op::Neg: return unary<T, [](T a) { return -a; }>;
    case Op::Min: return binary<T, [](T a, T b) { return std::isnan(a) || a < b ? a : b; }>;
    case Op::Max: return binary<T, [](T a, T b) { return (std::isnan(a) || a > b) ? a : b; }>;
    case Op::Lt: return compare<T, [](T a, T b) { return a < b; }>;
    case Op::Le: return compare<T, [](T a, T b) { return a <= b; }>;
    case Op::Gt: return compare<T, [](T a, T b) { return (a > b); }>;
    case Op::Ge: return compare<T, [](T a, T b) { return (a >= b); }>;
    case Op::Eq: return compare<T, [](T a, T b) { return a == b; }>;
    case Op::Ne: return compare<T, [](T a, T b) { return a != b; }>;
    case Op::Abs: return unary<T, [](T a) { return std::fabs(a); }>;
    case Op::Floor: return unary<T, [](T a) { return std::floor(a); }>;
    case Op::Ceil: return unary<T, [](T a) { return std::ceil(a); }>;
    case Op::Round: return unary<T, [](T a) { return std::nearbyint(a); }>;
    case Op::Exp: return unary<T, [](T a) { return std::exp(a); }>;
    case Op::Exp2:
    case Op::Exp2Approx: return unary<T, [](T a) { return std::exp2(a); }>;
    case Op::Log: return unary<T, [](T a) { return std::log(a); }>;
    case Op::Log2: return unary<T, [](T a) { return std::log2(a); }>;
    case Op::Sqrt: return unary<T, [](T a) { return std::sqrt(a); }>;
    case Op::Rsqrt: return unary<T, [](T a) { return T{1} / std::sqrt(a); }>;
    case Op::Sin: return unary<T, [](T a) { return std::sin(a); }>;
    case Op::Cos: return unary<T, [](T a) { return std::cos(a); }>;
    case Op::Tanh: return unary<T, [](T a) { return std::tanh(a); }>;
    case Op::Erf: return unary<T, [](T a) { return std::erf(a); }>;
    case Op::Sigmoid: return unary<T, sigmoid<T>>;
    case Op::Pow: return binary<T, [](T a, T b) { return std::pow(a, b); }>;
    case Op::Fma: return fused<T>;
    case Op::FloorDiv:
    case Op::FloorMod:
    case Op::And:
    case Op::Or:
    case Op::Not:
    case Op::BitAnd:
    case Op::BitOr:
    case Op::BitXor:
    case Op::BitNot:
    case Op::ShiftLeft:
    case Op::ShiftRight:
    case Op::Select: break;
  }
  HELVE_FAIL("an operator that has no meaning on floats");
}

// Integers. A domain gives the exact or wrapped result of each arithmetic step.

[[noreturn]] void overflow(const OpContext& c) {
  throw UserError(Code::IndexOverflow, c.span, {{"operation", std::string(row_of(c.op).text)}});
}

/// `index`: exact, refused where 64 bits do not hold the result.
struct Exact {
  using T = int64_t;
  static T add(T a, T b, const OpContext& c) {
    T r;
    if (__builtin_add_overflow(a, b, &r)) overflow(c);
    return r;
  }
  static T sub(T a, T b, const OpContext& c) {
    T r;
    if (__builtin_sub_overflow(a, b, &r)) overflow(c);
    return r;
  }
  static T mul(T a, T b, const OpContext& c) {
    T r;
    if (__builtin_mul_overflow(a, b, &r)) overflow(c);
    return r;
  }
  static T result(T v, const OpContext&) { return v; }
};

/// Data integers modulo 2^bits; T is uint64_t only for uint64, whose order and quotients are those of unsigned numbers.
template <class Number>
struct Wrapping {
  using T = Number;
  static T add(T a, T b, const OpContext&) {
    return static_cast<T>(static_cast<uint64_t>(a) + static_cast<uint64_t>(b));
  }
  static T sub(T a, T b, const OpContext&) {
    return static_cast<T>(static_cast<uint64_t>(a) - static_cast<uint64_t>(b));
  }
  static T mul(T a, T b, const OpContext&) {
    return static_cast<T>(static_cast<uint64_t>(a) * static_cast<uint64_t>(b));
  }
  static T result(T v, const OpContext& c) { return static_cast<T>(wrap_to(static_cast<int64_t>(v), c.dtype)); }
};

template <class D>
using Step = typename D::T (*)(typename D::T, typename D::T, const OpContext&);

template <class D, Step<D> F>
Scalar integers(const Scalar* a, const OpContext& c) {
  using T = typename D::T;
  return of_int(static_cast<int64_t>(D::result(F(static_cast<T>(a[0].i), static_cast<T>(a[1].i), c), c)));
}

template <class D, auto F>
Scalar ordered(const Scalar* a, const OpContext&) {
  using T = typename D::T;
  return of_int(static_cast<int64_t>(F(static_cast<T>(a[0].i), static_cast<T>(a[1].i))));
}

template <class D>
typename D::T floor_quotient(typename D::T a, typename D::T b, const OpContext& c) {
  if (b == 0) throw UserError(Code::ZeroDivisor, c.span);
  if constexpr (std::is_signed_v<typename D::T>) {
    if (b == -1) return D::sub(0, a, c);
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
  } else {
    return a / b;
  }
}

template <class D>
typename D::T floor_remainder(typename D::T a, typename D::T b, const OpContext& c) {
  if (b == 0) throw UserError(Code::ZeroDivisor, c.span);
  if constexpr (std::is_signed_v<typename D::T>) {
    if (b == -1) return 0;
    const typename D::T r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
  } else {
    return a % b;
  }
}

template <class T>
void require_shift(T count, const OpContext& c) {
  if constexpr (std::is_signed_v<T>) {
    if (count < 0) throw UserError(Code::NegativeShift, c.span, {{"count", static_cast<int64_t>(count)}});
  }
}

/// a * 2^b in the domain.
template <class D>
typename D::T shift_left(typename D::T a, typename D::T b, const OpContext& c) {
  using T = typename D::T;
  require_shift(b, c);
  if (a == 0) return 0;
  if (b >= 64) return D::mul(D::mul(a, T{1} << 62, c), 4, c);
  if (b >= 63) return D::mul(D::mul(a, T{1} << 62, c), 2, c);
  return D::mul(a, T{1} << b, c);
}

/// floor(a / 2^b).
template <class D>
typename D::T shift_right(typename D::T a, typename D::T b, const OpContext& c) {
  require_shift(b, c);
  if (b >= 64) return a < 0 ? static_cast<typename D::T>(-1) : 0;
  return a >> b;
}

template <class D>
Scalar negate(const Scalar* a, const OpContext& c) {
  return of_int(static_cast<int64_t>(D::result(D::sub(0, static_cast<typename D::T>(a[0].i), c), c)));
}

template <class D>
Scalar magnitude(const Scalar* a, const OpContext& c) {
  if constexpr (std::is_signed_v<typename D::T>) {
    if (a[0].i < 0) return negate<D>(a, c);
  }
  return a[0];
}

template <class D>
Scalar complement(const Scalar* a, const OpContext& c) {
  return of_int(static_cast<int64_t>(D::result(static_cast<typename D::T>(~a[0].i), c)));
}

Scalar logical_not(const Scalar* a, const OpContext&) { return of_int(a[0].i == 0); }

template <class D>
Operator integer_operator(Op op) {
  using T = typename D::T;
  switch (op) {
    case Op::Add: return integers<D, D::add>;
    case Op::Sub: return integers<D, D::sub>;
    case Op::Mul: return integers<D, D::mul>;
    case Op::FloorDiv: return integers<D, floor_quotient<D>>;
    case Op::FloorMod: return integers<D, floor_remainder<D>>;
    case Op::Neg: return negate<D>;
    case Op::Min: return ordered<D, [](T a, T b) { return a < b ? a : b; }>;
    case Op::Max: return ordered<D, [](T a, T b) { return (a > b) ? a : b; }>;
    case Op::Lt: return ordered<D, [](T a, T b) { return a < b; }>;
    case Op::Le: return ordered<D, [](T a, T b) { return a <= b; }>;
    case Op::Gt: return ordered<D, [](T a, T b) { return (a > b); }>;
    case Op::Ge: return ordered<D, [](T a, T b) { return (a >= b); }>;
    case Op::Eq: return ordered<D, [](T a, T b) { return a == b; }>;
    case Op::Ne: return ordered<D, [](T a, T b) { return a != b; }>;
    case Op::BitAnd: return ordered<D, [](T a, T b) { return a & b; }>;
    case Op::BitOr: return ordered<D, [](T a, T b) { return a | b; }>;
    case Op::BitXor: return ordered<D, [](T a, T b) { return a ^ b; }>;
    case Op::BitNot: return complement<D>;
    case Op::ShiftLeft: return integers<D, shift_left<D>>;
    case Op::ShiftRight: return integers<D, shift_right<D>>;
    case Op::Abs: return magnitude<D>;
    case Op::Not: return logical_not;
    case Op::Div:
    case Op::And:
    case Op::Or:
    case Op::Select:
    case Op::Floor:
    case Op::Ceil:
    case Op::Round:
    case Op::Exp:
    case Op::Exp2:
    case Op::Exp2Approx:
    case Op::Log:
    case Op::Log2:
    case Op::Sqrt:
    case Op::Rsqrt:
    case Op::Sin:
    case Op::Cos:
    case Op::Tanh:
    case Op::Erf:
    case Op::Sigmoid:
    case Op::Pow:
    case Op::Fma: break;
  }
  HELVE_FAIL("an operator that has no meaning on integers");
}

}  // namespace

Operator operator_on(Op op, DType dtype) {
  if (dtype == kFloat64) return float_operator<double>(op);
  if (dtype.is_float()) return float_operator<float>(op);
  if (dtype.is_index()) return integer_operator<Exact>(op);
  if (is_uint64(dtype)) return integer_operator<Wrapping<uint64_t>>(op);
  return integer_operator<Wrapping<int64_t>>(op);
}

}  // namespace helve::interp
