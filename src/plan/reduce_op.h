// The operator of a reduction, as the runtime has it.
// Layouts say how terms make a tensor; the runtime reduces rows.
#pragma once

#include "helve/layout/distribution.h"
#include "helve/runtime/plan.h"
#include "helve/support/diagnostic.h"

namespace helve {

inline runtime::ReduceOp reduce_op(PartialOp op) {
  switch (op) {
    case PartialOp::Sum: return runtime::ReduceOp::Sum;
    case PartialOp::Prod: return runtime::ReduceOp::Prod;
    case PartialOp::Max: return runtime::ReduceOp::Max;
    case PartialOp::Min: return runtime::ReduceOp::Min;
  }
  HELVE_FAIL("an unknown operator");
}

}  // namespace helve
