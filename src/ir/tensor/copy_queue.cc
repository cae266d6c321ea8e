// What asynchronous copies and products are counted in until they complete.
// It is a property of the operation's row and operands, so that all rooms agree on it.
#include "helve/ir/tensor/copy_queue.h"

#include "helve/ir/tensor/visit.h"

namespace helve {

CopyQueue copy_queue(const TileOp& op) {
  using enum TileOpcode;
  if (op.op == Wgmma || op.op == WgmmaFence || op.op == WgmmaCommit || op.op == WgmmaWait) {
    return {CopyQueue::Kind::Products, nullptr};
  }
  if (op.op == TileOpcode::CommitBulk || op.op == TileOpcode::WaitBulk) return {CopyQueue::Kind::Bulk, nullptr};
  if (const Region* barriers = op.barriers()) {
    const bool bytes = op.op == TileOpcode::StAsync || op.op == TileOpcode::CommWaitBytes;
    return {bytes ? CopyQueue::Kind::Bytes : CopyQueue::Kind::Barriers, barriers->buffer.get()};
  }
  const std::optional<size_t> bulk = op.row().find("bulk_group");
  return {bulk && op.flag(*bulk) ? CopyQueue::Kind::Bulk : CopyQueue::Kind::Block, nullptr};
}

bool commits(const TileOp& op) {
  using enum TileOpcode;
  return op.op == CommitAsync || op.op == CommitBulk || op.op == MbarrierCommit || op.op == WgmmaCommit;
}

bool is_group(const TileOp& op) {
  return op.begins_copy() && op.op != TileOpcode::CpAsync && copy_queue(op).kind == CopyQueue::Kind::Block;
}

bool counts_bytes(const Stmt& s, const Buffer& barriers) {
  const CopyQueue queue{CopyQueue::Kind::Bytes, &barriers};
  return has_operation(s, [&](const TileOp& op) { return copy_queue(op) == queue; });
}

std::string wait_text(const CopyQueue& queue) {
  switch (queue.kind) {
    case CopyQueue::Kind::Block: return "T.wait_async()";
    case CopyQueue::Kind::Bulk: return "T.wait_bulk()";
    case CopyQueue::Kind::Bytes: return "T.comm.wait_bytes of '" + queue.barriers->name + "'";
    case CopyQueue::Kind::Barriers: return "T.mbarrier_wait(" + queue.barriers->name + ")";
    case CopyQueue::Kind::Products: return "T.wgmma_wait()";
  }
  __builtin_unreachable();
}

std::string work_text(const CopyQueue& queue) { return queue.kind == CopyQueue::Kind::Products ? "product" : "copy"; }

}  // namespace helve
