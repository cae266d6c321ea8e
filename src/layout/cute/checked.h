// The room's checked integers, and the divisions of digits.
// Colexicographic digits are floor remainders, so that a layout has a value at every integer.
#pragma once

#include "integers.h"

namespace helve::cute {

using layout_detail::checked_add;
using layout_detail::checked_multiply;
using layout_detail::divide;
using layout_detail::floor_divide;
using layout_detail::narrow;
using layout_detail::Quotient;
using layout_detail::refuse_overflow;
using layout_detail::Wide;

/// The floor remainder, divisor above 0.
inline int64_t floor_modulo(int64_t a, int64_t b) {
  int64_t rest = a % b;
  return rest < 0 ? rest + b : rest;
}
/// The quotient rounded up, both above 0.
inline int64_t ceil_divide(int64_t a, int64_t b) { return a == 1 ? 1 : divide(a - 1, b).value + 1; }

}  // namespace helve::cute
