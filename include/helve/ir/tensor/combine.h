// What it means to combine two partial results of a reduction.
// Reductions of a block and of a group of cores share it; where and in which order they combine is their own business.
#pragma once

#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/stmt.h"
#include "helve/ir/tensor/tile_op.h"

namespace helve {

/// The dtype in which values of `dtype` are accumulated.
inline DType accumulator(DType dtype) { return dtype.is_small_float() ? kFloat32 : dtype; }

/// The dtype of partial results of updates by values of dtype `value`, the common type of the update: sums and products
/// of floats are rounded to the element's dtype when they are merged, and not before.
inline DType partial_dtype(StoreMode update, DType element, DType value) {
  const bool rounds = element.is_float() && (update == StoreMode::Add || update == StoreMode::Mul);
  return rounds ? accumulator(value) : element;
}

/// What a reduction over nothing gives, in `dtype`, that of its result: combined with any value of `dtype`, it leaves
/// that value as it is. For a maximum the least value of the type, which is -infinity where the type has it.
Expr identity_imm(ReduceKind kind, DType dtype);
/// The same of an update's operator.
Expr identity_imm(StoreMode update, DType dtype);

/// Two partial results as one.
Expr combine(ReduceKind kind, const Expr& a, const Expr& b);

}  // namespace helve
