// Checked integers of the CuTe algebra.
// Values are formed in 128 bits and narrowed here, so that no operation wraps silently.
#pragma once

#include <cstdint>
#include <string_view>

#include "helve/layout/layout_error.h"

namespace helve::cute {

using Wide = __int128;

[[noreturn]] void refuse_overflow(std::string_view what);

/// `value`, or UnsupportedError "`what` does not fit in 64 bits".
inline int64_t narrow(Wide value, std::string_view what) {
  if (value != static_cast<int64_t>(value)) refuse_overflow(what);
  return static_cast<int64_t>(value);
}
inline int64_t multiply(int64_t a, int64_t b, std::string_view what) {
  int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) refuse_overflow(what);
  return result;
}
inline int64_t add(int64_t a, int64_t b, std::string_view what) {
  int64_t result;
  if (__builtin_add_overflow(a, b, &result)) refuse_overflow(what);
  return result;
}

/// Floor quotient and remainder, divisor above 0.
inline int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }
inline int64_t floor_modulo(int64_t a, int64_t b) {
  int64_t rest = a % b;
  return rest < 0 ? rest + b : rest;
}
/// Rounded up, both above 0.
inline int64_t ceil_divide(int64_t a, int64_t b) { return (a - 1) / b + 1; }

}  // namespace helve::cute
