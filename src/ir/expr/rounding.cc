// Rounding and wrapping of scalar values, and the bit patterns of all float formats.
// Every float format below 32 bits is described by exponent width, mantissa width and its special values; one routine
// serves all.
#include "helve/ir/expr/rounding.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "helve/support/diagnostic.h"
#include "helve/support/round_to_odd.h"

namespace helve {

namespace {

struct Format {
  int exponent_bits;
  int mantissa_bits;
  int bias;
  bool has_infinity;  ///< float8_e4m3 has none: the top exponent holds numbers, all ones is NaN
  bool has_nan = true;  ///< float4_e2m1 has numbers only: what is too large is its largest one, NaN is -0
};

Format format_of(DType t) {
  switch (t.code) {
    case TypeCode::BFloat: return {8, 7, 127, true};
    case TypeCode::Float8E4M3: return {4, 3, 7, false};
    case TypeCode::Float8E5M2: return {5, 2, 15, true};
    case TypeCode::Float4E2M1: return {2, 1, 1, false, false};
    case TypeCode::Float:
      if (t.bits == 16) return {5, 10, 15, true};
      [[fallthrough]];
    default: HELVE_FAIL("not a small float format");
  }
}

double max_finite(const Format& f) {
  const int top = (1 << f.exponent_bits) - (f.has_infinity ? 2 : 1);
  const int steps = (1 << f.mantissa_bits) - (f.has_infinity || !f.has_nan ? 1 : 2);
  return std::ldexp(1.0 + static_cast<double>(steps) / (1 << f.mantissa_bits), top - f.bias);
}

double round_small(double value, const Format& f) {
  if (std::isnan(value) && !f.has_nan) return -0.0;
  if (std::isnan(value) || value == 0) return value;
  const double limit = max_finite(f);
  double rounded = value;
  if (!std::isinf(value)) {
    int exponent;
    std::frexp(value, &exponent);
    const int lowest = 1 - f.bias;  // exponent of the smallest normal number
    const int unit = std::max(exponent - 1, lowest) - f.mantissa_bits;
    rounded = std::ldexp(std::nearbyint(std::ldexp(value, -unit)), unit);
  }
  if (std::fabs(rounded) <= limit) return rounded;
  if (!f.has_nan) return std::copysign(limit, value);
  return f.has_infinity ? std::copysign(std::numeric_limits<double>::infinity(), value)
                        : std::numeric_limits<double>::quiet_NaN();
}

template <class T>
double integer_as_float(T value, DType dtype) {
  if (dtype == kFloat64) return static_cast<double>(value);
  if (dtype == kFloat32) return static_cast<float>(value);
  return round_small(round_to_odd(value), format_of(dtype));
}

}  // namespace

double float_of(int64_t value, DType dtype) { return integer_as_float(value, dtype); }
double float_of(uint64_t value, DType dtype) { return integer_as_float(value, dtype); }

double round_to(double value, DType dtype) {
  if (dtype == kFloat64) return value;
  if (dtype == kFloat32) return static_cast<float>(value);
  return round_small(value, format_of(dtype));
}

int64_t wrap_to(int64_t value, DType dtype) {
  if (dtype.is_bool()) return value != 0;
  if (dtype.is_index() || dtype.bits >= 64) return value;
  const uint64_t mask = (uint64_t{1} << dtype.bits) - 1;
  uint64_t low = static_cast<uint64_t>(value) & mask;
  const bool negative = dtype.code == TypeCode::Int && ((low >> (dtype.bits - 1)) & 1);
  return static_cast<int64_t>(negative ? low | ~mask : low);
}

double extreme_float(DType dtype, bool lowest) {
  const double sign = lowest ? -1.0 : 1.0;
  if (dtype.is_small_float()) {
    const Format f = format_of(dtype);
    if (!f.has_infinity) return sign * max_finite(f);
  }
  return sign * std::numeric_limits<double>::infinity();
}

int64_t extreme_int(DType dtype, bool lowest) {
  if (dtype.is_bool()) return lowest ? 0 : 1;
  if (dtype.code == TypeCode::UInt) {
    if (lowest) return 0;
    return dtype.bits >= 64 ? -1 : static_cast<int64_t>((uint64_t{1} << dtype.bits) - 1);
  }
  const int64_t low = dtype.bits >= 64 ? std::numeric_limits<int64_t>::min() : -(int64_t{1} << (dtype.bits - 1));
  return lowest ? low : -(low + 1);
}

uint64_t float_bits(double value, DType dtype) {
  if (dtype == kFloat64) return std::bit_cast<uint64_t>(value);
  if (dtype == kFloat32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  const Format f = format_of(dtype);
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (f.exponent_bits + f.mantissa_bits) : 0;
  const uint64_t ones = (uint64_t{1} << f.exponent_bits) - 1;
  if (std::isnan(value)) {
    const uint64_t payload =
        f.has_infinity ? uint64_t{1} << (f.mantissa_bits - 1) : (uint64_t{1} << f.mantissa_bits) - 1;
    return sign | ones << f.mantissa_bits | payload;
  }
  if (std::isinf(value)) return sign | ones << f.mantissa_bits;
  if (value == 0) return sign;
  int exponent;
  std::frexp(value, &exponent);
  const int biased = exponent - 1 + f.bias;
  if (biased <= 0) {  // subnormal
    return sign | static_cast<uint64_t>(std::ldexp(std::fabs(value), f.bias - 1 + f.mantissa_bits));
  }
  const double fraction = std::ldexp(std::fabs(value), -(exponent - 1)) - 1.0;
  return sign | static_cast<uint64_t>(biased) << f.mantissa_bits |
         static_cast<uint64_t>(std::ldexp(fraction, f.mantissa_bits));
}

double float_value(uint64_t bits, DType dtype) {
  if (dtype == kFloat64) return std::bit_cast<double>(bits);
  if (dtype == kFloat32) return std::bit_cast<float>(static_cast<uint32_t>(bits));
  const Format f = format_of(dtype);
  const uint64_t mantissa = bits & ((uint64_t{1} << f.mantissa_bits) - 1);
  const uint64_t ones = (uint64_t{1} << f.exponent_bits) - 1;
  const uint64_t exponent = (bits >> f.mantissa_bits) & ones;
  const double sign = (bits >> (f.exponent_bits + f.mantissa_bits)) & 1 ? -1.0 : 1.0;
  if (f.has_infinity && exponent == ones) {
    return mantissa ? std::numeric_limits<double>::quiet_NaN() : sign * std::numeric_limits<double>::infinity();
  }
  if (!f.has_infinity && f.has_nan && exponent == ones && mantissa == (uint64_t{1} << f.mantissa_bits) - 1) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  if (exponent == 0) return sign * std::ldexp(static_cast<double>(mantissa), 1 - f.bias - f.mantissa_bits);
  return sign *
         std::ldexp(1.0 + static_cast<double>(mantissa) / (1 << f.mantissa_bits), static_cast<int>(exponent) - f.bias);
}

}  // namespace helve
