// What it means to combine two partial results of a reduction.
// Reductions of a block and of a group of cores share it; where and in which order they combine is their own business.
#pragma once

#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/tile_op.h"

namespace helve {

/// The dtype in which values of `dtype` are accumulated.
inline DType accumulator(DType dtype) { return dtype.is_small_float() ? kFloat32 : dtype; }

/// Two partial results as one.
Expr combine(ReduceKind kind, const Expr& a, const Expr& b);

}  // namespace helve
