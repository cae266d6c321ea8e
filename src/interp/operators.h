// The meaning of every scalar operator and conversion.
// Expressions, reductions and products use the same functions, so an operation cannot mean two things.
#pragma once

#include "helve/ir/expr/operators.h"
#include "scalar.h"

namespace helve::interp {

/// What an operator needs besides its operands: their dtype and where the operation stands.
struct OpContext {
  Op op;
  DType dtype;
  Span span;
};

using Operator = Scalar (*)(const Scalar* operands, const OpContext& context);

/// The function of `op` on operands of `dtype`. And, Or and Select evaluate lazily and have none here.
Operator operator_on(Op op, DType dtype);

using Converter = Scalar (*)(Scalar value, DType to, const Span& span);

/// The conversion of values: float to float rounds to nearest even, float to integer truncates and saturates (NaN gives
/// 0), integer to integer wraps, anything to bool compares with 0, bool gives 0 and 1. uint64 beyond int64 is no index
/// (IndexOverflow).
Converter converter_of(DType from, DType to);

inline Scalar convert(Scalar value, DType from, DType to, const Span& span) {
  return converter_of(from, to)(value, to, span);
}

/// A binary operator with its context, for folds over elements.
class Fold {
 public:
  Fold(Op op, DType dtype, const Span& span) : function_(operator_on(op, dtype)), context_{op, dtype, span} {}
  Scalar operator()(Scalar a, Scalar b) const {
    const Scalar operands[2] = {a, b};
    return function_(operands, context_);
  }
  Scalar operator()(Scalar a) const { return function_(&a, context_); }

 private:
  Operator function_;
  OpContext context_;
};

}  // namespace helve::interp
