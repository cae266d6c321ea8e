// What asynchronous copies and products are counted in until they complete.
// Those of one queue complete in the order of their groups, those of different queues in any.
#pragma once

#include "helve/ir/tensor/stmt.h"

namespace helve {

struct CopyQueue {
  /// Of T.commit_async and T.wait_async; of T.commit_bulk and T.wait_bulk; of T.mbarrier_commit and T.mbarrier_wait; of
  /// stores by T.st_async, for which T.comm.wait_bytes waits; of products by T.wgmma, with T.wgmma_commit and
  /// T.wgmma_wait.
  enum class Kind { Block, Bulk, Barriers, Bytes, Products };
  Kind kind = Kind::Block;
  const Buffer* barriers = nullptr;  ///< the mbarriers of Kind::Barriers and Kind::Bytes

  bool operator==(const CopyQueue&) const = default;
};

/// The queue of a copy or product that begins, of a commit or of a wait.
CopyQueue copy_queue(const TileOp& op);

/// Does it make a group of the copies or products that wait for a commit of its queue?
bool commits(const TileOp& op);

/// Is the copy that it begins at block scope a group of its own, or does it wait for a commit?
bool is_group(const TileOp& op);

/// Are these mbarriers, in the statement, those of stores by T.st_async?
bool counts_bytes(const Stmt& s, const Buffer& barriers);

/// "T.mbarrier_wait(arrivals)": the wait for all copies of the queue.
std::string wait_text(const CopyQueue& queue);

/// "copy" or "product": what is counted in the queue.
std::string work_text(const CopyQueue& queue);

}  // namespace helve
