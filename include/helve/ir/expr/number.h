// Whole numbers as constants of whichever dtype a place has.
// What fills a buffer or begins a sum is 0 or 1 of the buffer's dtype: a float has another node than the rest.
#pragma once

#include "helve/ir/expr/build.h"

namespace helve {

/// `value`, which `dtype` can hold, as a constant of it; 0 and 1 are also false and true.
inline Expr number_imm(int64_t value, DType dtype, Span span = {}) {
  return dtype.is_float() ? float_imm(static_cast<double>(value), dtype, span) : int_imm(value, dtype, span);
}

}  // namespace helve
