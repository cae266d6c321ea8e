// Constant folding of one operator.
// Index constants are exact or not folded; data integers wrap as the language says; floats are compared, never
// computed.
#pragma once

#include <optional>
#include <span>

#include "helve/ir/expr/expr.h"

namespace helve {

/// The value of `op` on integer (or bool) values of `operand` type, as the bit pattern that an IntImm holds. Empty when
/// it is undefined (zero divisor, shift out of range), leaves int64 (index), or is not an integer operation.
std::optional<int64_t> fold_values(Op op, DType operand, std::span<const int64_t> values);

/// The constant that the node is, when its operands are constants; else null.
Expr fold_constants(const Expr& e);

}  // namespace helve
