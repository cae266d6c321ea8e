// Values of dtypes of which two share a byte, in terms of bytes.
// No target has such a dtype: pack_elements computes with wider ones, which hold every value of it.
#pragma once

#include "helve/ir/expr/build.h"

namespace helve {

/// The dtype in which values are computed: int8 for int4, float32 for float4_e2m1.
DType computed_as(DType packed);

/// The dtype of memory with an element a byte: int8 for int4, float8_e4m3 for float4_e2m1.
DType kept_as(DType packed);

/// The element at `place` along the last dimension, as it is computed, from the byte that holds it.
Expr unpacked(const Expr& byte, const Expr& place, DType packed);

/// The byte of two elements, the first one in its low half. Both are values of the dtype, as they are computed.
Expr packed_pair(const Expr& first, const Expr& second, DType packed);

/// T.cast of a value of any dtype, as it is computed.
Expr cast_to_packed(const Expr& value, DType packed);

/// What a computation in the wider dtype gives in the packed one: an integer wraps, a float is rounded.
Expr in_range(const Expr& value, DType packed);

}  // namespace helve
