// One scalar value while a program runs.
// A value is interpreted by the dtype of its expression: floats as double (float32 and smaller hold values of float32),
// all else as int64 (uint64 as its bit pattern).
#pragma once

#include <cstdint>

#include "helve/ir/expr/dtype.h"
#include "helve/support/span.h"

namespace helve::interp {

union Scalar {
  double f;
  int64_t i;
};

inline Scalar of_float(double v) {
  Scalar s;
  s.f = v;
  return s;
}
inline Scalar of_int(int64_t v) {
  Scalar s;
  s.i = v;
  return s;
}

inline bool is_uint64(DType t) { return t.code == TypeCode::UInt && t.bits == 64; }

/// The dtype in which values of `t` are computed: float32 for smaller floats.
inline DType evaluation_dtype(DType t) { return t.is_small_float() ? kFloat32 : t; }

}  // namespace helve::interp
