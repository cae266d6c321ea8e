// The values of each dtype.
// Constants, the interpreter and tests share one definition of rounding and wrapping, so that they cannot disagree.
#pragma once

#include <cstdint>

#include "helve/ir/expr/dtype.h"

namespace helve {

/// `value` rounded to the nearest value of a float dtype, ties to even. Overflow gives infinity, except float8_e4m3
/// (which has none): NaN.
double round_to(double value, DType dtype);

/// An integer as the nearest value of a float dtype, ties to even: rounded once, also where float64 does not hold it.
double float_of(int64_t value, DType dtype);
double float_of(uint64_t value, DType dtype);

/// `value` modulo 2^bits as the (signed or unsigned) integer dtype; uint64 keeps the bit pattern in int64. `index`
/// keeps all.
int64_t wrap_to(int64_t value, DType dtype);

/// The least (or greatest) value: -inf or the lowest finite for floats without infinity; the extreme integers.
double extreme_float(DType dtype, bool lowest);
int64_t extreme_int(DType dtype, bool lowest);

/// The bit pattern of `value` (already rounded) in a float dtype, and back.
uint64_t float_bits(double value, DType dtype);
double float_value(uint64_t bits, DType dtype);

}  // namespace helve
