// Element types and constants in C.
// Small floats and bool have a different type in memory than in computations; this file defines both.
#pragma once

#include <string>

#include "helve/ir/expr/dtype.h"

namespace helve::c {

/// The type of a value: small floats are float. `index` has no type here (its width follows from bounds).
std::string value_type(DType t);

/// The type of an element in memory: small floats are structs of their bits, bool a byte. UserError DTypeOnTarget for a
/// packed type, whose elements have no address.
std::string memory_type(DType t);

/// The unsigned type in which an integer wraps: at least 32 bits wide, as C promotes.
std::string wrapping_type(DType t);

/// "bfloat16", "float16", "float8_e4m3", "float8_e5m2": the suffix of a small float's struct and functions.
std::string small_float_name(DType t);

/// A constant of the type. A negative one is a prefix operator on a primary expression.
std::string integer_text(int64_t value, DType t, bool wide = false);
std::string float_text(double value, DType t);

}  // namespace helve::c
