// What a reduction begins with, and what it means to combine two partial results.
// Magnitudes are magnitudes already when they meet.
#include "helve/ir/tensor/combine.h"

#include "helve/ir/expr/number.h"

namespace helve {

Expr identity_imm(ReduceKind kind, DType dtype) {
  switch (kind) {
    case ReduceKind::Sum:
    case ReduceKind::AbsMax: return number_imm(0, dtype);
    case ReduceKind::Prod: return number_imm(1, dtype);
    case ReduceKind::Max: return extreme_imm(dtype, true);
    case ReduceKind::Min: return extreme_imm(dtype, false);
    case ReduceKind::Any: return bool_imm(false);
    case ReduceKind::All: return bool_imm(true);
  }
  __builtin_unreachable();
}

Expr identity_imm(StoreMode update, DType dtype) {
  switch (update) {
    case StoreMode::Add: return identity_imm(ReduceKind::Sum, dtype);
    case StoreMode::Mul: return identity_imm(ReduceKind::Prod, dtype);
    case StoreMode::Max: return identity_imm(ReduceKind::Max, dtype);
    case StoreMode::Min: return identity_imm(ReduceKind::Min, dtype);
    default: break;
  }
  HELVE_CHECK(false, "the identity of a store that is no update");
}

Expr combine(ReduceKind kind, const Expr& a, const Expr& b) {
  switch (kind) {
    case ReduceKind::Sum: return a + b;
    case ReduceKind::Prod: return a * b;
    case ReduceKind::Max:
    case ReduceKind::AbsMax: return max(a, b);
    case ReduceKind::Min: return min(a, b);
    case ReduceKind::Any: return apply(Op::Or, {a, b});
    case ReduceKind::All: return logical_and(a, b);
  }
  __builtin_unreachable();
}

}  // namespace helve
