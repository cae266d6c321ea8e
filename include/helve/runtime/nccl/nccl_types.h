// What NCCL reduces as helve does, and by which of its numbers.
// Who calls a reduction of NCCL asks here, so that nobody has one that rounds or orders otherwise.
#pragma once

#include <optional>

#include "helve/runtime/dlpack.h"
#include "helve/runtime/nccl/nccl_library.h"
#include "helve/runtime/plan.h"

namespace helve::runtime::nccl {

/// NCCL's number of an element type that is moved as itself; none for those it does not have in all versions.
std::optional<NcclDataType> nccl_type_of(DLDataType dtype);

NcclRedOp nccl_op_of(ReduceOp op);

/// Does NCCL reduce it as helve does? It passes over NaN in maxima, and rounds small floats at every step.
bool is_reduced_by_nccl(DLDataType dtype, ReduceOp op);

/// Is a collective of so many members one call of NCCL? All else is sends and receives.
bool is_one_call(CollectiveKind kind, DLDataType dtype, ReduceOp op, int64_t members);

}  // namespace helve::runtime::nccl
