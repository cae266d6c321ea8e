// Integers as constants of any dtype.
// Fills and initial sums need 0 or 1 of the buffer's dtype, which for floats is another kind of node.
#pragma once

#include "helve/ir/expr/build.h"

namespace helve {

/// `value`, which `dtype` can hold, as a constant of it; 0 and 1 are also false and true.
inline Expr number_imm(int64_t value, DType dtype, Span span = {}) {
  return dtype.is_float() ? float_imm(static_cast<double>(value), dtype, span) : int_imm(value, dtype, span);
}

}  // namespace helve
