// int4 and float4_e2m1 by shifts and masks.
// Formulas are of 32 bits, which all targets compute in registers and vectors; constants among operands fold later.
#include "packed_values.h"

#include "helve/support/diagnostic.h"

namespace helve {

namespace {

constexpr DType kInt8{TypeCode::Int, 8};
constexpr DType kUInt8{TypeCode::UInt, 8};
constexpr DType kUInt32{TypeCode::UInt, 32};
constexpr DType kFloat8{TypeCode::Float8E4M3, 8};

bool is_float(DType packed) { return packed.is_float(); }

Expr number(int64_t value) { return int_imm(value, kInt32); }
Expr real(double value, DType t) { return float_imm(value, t); }
Expr left(const Expr& e, const Expr& by) { return apply(Op::ShiftLeft, {e, by}); }
Expr right(const Expr& e, const Expr& by) { return apply(Op::ShiftRight, {e, by}); }
Expr both(const Expr& a, const Expr& b) { return apply(Op::BitAnd, {a, b}); }
Expr either(const Expr& a, const Expr& b) { return apply(Op::BitOr, {a, b}); }

/// The sign bit of a float32 or a float64, also of a zero and a NaN.
Expr is_negative(const Expr& value) {
  const DType bits{TypeCode::Int, value->dtype.bits};
  return less(bitcast(value, bits), int_imm(0, bits));
}

/// Twice the absolute values of float4_e2m1, one in 4 bits, that of the code 0 lowest.
constexpr int64_t kDoubled = 0xc8643210;

/// The values of float4_e2m1 are numbers: 0, 0.5, 1, 1.5, 2, 3, 4, 6. What is between two of them is rounded to the
/// nearer, or to the one whose last bit is 0; what is beyond is 6 and NaN is -0, as in ml_dtypes.
Expr rounded(const Expr& value) {
  const DType t = value->dtype;
  const Expr size = min(apply(Op::Abs, {value}), real(6, t));
  const Expr below2 = less(size, real(2, t)), below4 = less(size, real(4, t));
  const auto by_size = [&](double small, double medium, double large) {
    return select(below2, real(small, t), select(below4, real(medium, t), real(large, t)));
  };
  const Expr whole = apply(Op::Round, {size * by_size(2, 1, 0.5)}) * by_size(0.5, 1, 2);
  const Expr found = select(is_negative(value), apply(Op::Neg, {whole}), whole);
  return cast(select(apply(Op::Eq, {value, value}), found, real(-0.0, t)), kFloat32);
}

/// The 4 bits of an element.
Expr code_of(const Expr& value, DType packed) {
  if (!is_float(packed)) return both(cast(value, kInt32), number(15));
  const Expr doubled = cast(apply(Op::Abs, {value}) * real(2, kFloat32), kInt32);
  const Expr large =
      select(less(doubled, number(8)), number(2) + right(doubled, number(1)), number(4) + right(doubled, number(2)));
  return select(less(doubled, number(4)), doubled, large) + select(is_negative(value), number(8), number(0));
}

}  // namespace

DType computed_as(DType packed) { return is_float(packed) ? kFloat32 : kInt8; }

DType kept_as(DType packed) { return is_float(packed) ? kFloat8 : kInt8; }

Expr unpacked(const Expr& byte, const Expr& place, DType packed) {
  const Expr shift = floor_mod(place, int_imm(2)) * int_imm(4);
  const Expr bits = cast(byte, kInt32);
  if (!is_float(packed)) {
    return cast(right(left(bits, cast(int_imm(28) - shift, kInt32)), number(28)), kInt8);
  }
  const Expr code = both(right(bits, cast(shift, kInt32)), number(15));
  const Expr at = cast(both(code, number(7)) * number(4), kUInt32);
  const Expr doubled = both(right(int_imm(kDoubled, kUInt32), at), int_imm(15, kUInt32));
  const Expr half = select(less(code, number(8)), real(0.5, kFloat32), real(-0.5, kFloat32));
  return cast(doubled, kFloat32) * half;
}

Expr packed_pair(const Expr& first, const Expr& second, DType packed) {
  return cast(either(code_of(first, packed), left(code_of(second, packed), number(4))), kUInt8);
}

Expr cast_to_packed(const Expr& value, DType packed) {
  const DType from = value->dtype;
  if (is_float(packed)) return rounded(cast(value, from == kFloat64 ? kFloat64 : kFloat32));
  const Expr wide = cast(value, kInt8);
  if (!from.is_float()) return in_range(wide, packed);
  return max(min(wide, int_imm(7, kInt8)), int_imm(-8, kInt8));
}

Expr in_range(const Expr& value, DType packed) {
  if (is_float(packed)) return rounded(value);
  const Expr half = int_imm(4, kInt8);
  return right(left(value, half), half);
}

}  // namespace helve
