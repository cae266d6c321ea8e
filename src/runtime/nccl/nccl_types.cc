// NCCL's numbers of types and operators.
// A sum of floats has NCCL's own order; everything else that it may reduce is the same in any order.
#include "helve/runtime/nccl/nccl_types.h"

#include "helve/support/diagnostic.h"

namespace helve::runtime::nccl {

std::optional<NcclDataType> nccl_type_of(DLDataType dtype) {
  if (dtype.lanes != 1) return std::nullopt;
  switch (dtype.code << 8 | dtype.bits) {
    case kDLInt << 8 | 8: return kNcclInt8;
    case kDLUInt << 8 | 8: return kNcclUint8;
    case kDLInt << 8 | 32: return kNcclInt32;
    case kDLUInt << 8 | 32: return kNcclUint32;
    case kDLInt << 8 | 64: return kNcclInt64;
    case kDLUInt << 8 | 64: return kNcclUint64;
    case kDLFloat << 8 | 32: return kNcclFloat32;
    case kDLFloat << 8 | 64: return kNcclFloat64;
    default: return std::nullopt;
  }
}

NcclRedOp nccl_op_of(ReduceOp op) {
  switch (op) {
    case ReduceOp::Sum: return kNcclSum;
    case ReduceOp::Prod: return kNcclProd;
    case ReduceOp::Max: return kNcclMax;
    case ReduceOp::Min: return kNcclMin;
  }
  HELVE_FAIL("an unknown operator");
}

bool is_reduced_by_nccl(DLDataType dtype, ReduceOp op) {
  if (!nccl_type_of(dtype)) return false;
  return dtype.code != kDLFloat || op == ReduceOp::Sum || op == ReduceOp::Prod;
}

bool is_one_call(CollectiveKind kind, DLDataType dtype, ReduceOp op, int64_t members) {
  if (members < 2) return false;
  switch (kind) {
    case CollectiveKind::AllGather:
    case CollectiveKind::Broadcast:
    case CollectiveKind::Barrier: return true;
    case CollectiveKind::AllReduce:
    case CollectiveKind::Reduce:
    case CollectiveKind::ReduceScatter: return is_reduced_by_nccl(dtype, op);
    case CollectiveKind::Gather:
    case CollectiveKind::Scatter:
    case CollectiveKind::AllToAll:
    case CollectiveKind::Permute: return false;
  }
  HELVE_FAIL("an unknown collective");
}

}  // namespace helve::runtime::nccl
