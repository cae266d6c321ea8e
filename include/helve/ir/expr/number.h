// Integers as constants of any dtype, and zero among constants.
// Fills and initial sums need 0 or 1 of the buffer's dtype, which for floats is another kind of node.
#pragma once

#include <cmath>

#include "helve/ir/expr/build.h"

namespace helve {

/// `value`, which `dtype` can hold, as a constant of it; 0 and 1 are also false and true.
inline Expr number_imm(int64_t value, DType dtype, Span span = {}) {
  return dtype.is_float() ? float_imm(static_cast<double>(value), dtype, span) : int_imm(value, dtype, span);
}

/// Is it a constant whose bits are all zero? -0.0 is none.
inline bool is_zero_bits(const Expr& e) {
  if (const FloatImm* number = as<FloatImm>(e)) return number->value == 0 && !std::signbit(number->value);
  const int64_t* value = int_value(e);
  return value && *value == 0;
}

}  // namespace helve
