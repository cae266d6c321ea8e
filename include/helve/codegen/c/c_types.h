// Element types and constants in C.
// What a value is while it is computed with and what it is in memory differ for small floats and bool; both are decided
// here.
#pragma once

#include <string>

#include "helve/ir/expr/dtype.h"

namespace helve::c {

/// The type of a value: small floats are float. `index` has none of its own (its width follows from bounds).
std::string value_type(DType t);

/// The type of an element in memory: small floats are structs of their bits, bool a byte. UserError DTypeOnTarget for a
/// packed type, which is not addressed singly.
std::string memory_type(DType t);

/// The unsigned type in which an integer wraps: at least 32 bits wide, as C promotes.
std::string wrapping_type(DType t);

/// "bfloat16", "float16", "float8_e4m3", "float8_e5m2": the end of the names of a small float's struct and functions.
std::string small_float_name(DType t);

/// A constant of the type. A negative one is to be read as a prefix operator on a primary.
std::string integer_text(int64_t value, DType t, bool wide = false);
std::string float_text(double value, DType t);

}  // namespace helve::c
