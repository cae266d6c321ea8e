// What it means to combine two partial results of a reduction.
// Magnitudes are magnitudes already when they meet.
#include "helve/ir/tensor/combine.h"

namespace helve {

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
