// Memory of a core to which the members of its groups store what a small collective gathers.
// Declared for a kernel as a whole, because the exchanges of one axis take turns in it.
#pragma once

#include <map>
#include <string>
#include <unordered_set>
#include <utility>

#include "helve/analysis/core_groups.h"
#include "helve/ir/tensor/function.h"

namespace helve {

class PushBuffers {
 public:
  /// Of the collectives of the kernel that are small enough. The buffers stand at this offset of shared memory.
  PushBuffers(const Kernel& kernel, const MeshShape& mesh, int64_t offset);

  bool pushes(const TileOp& op) const { return pushed_.contains(&op); }
  /// Allocates the buffers; no core stores to another before it has done so.
  std::vector<Stmt> begin() const;
  /// Stores the source to all members of the group.
  Stmt push(const TileOp& op) const;
  /// Waits for what the members stored, and computes the destination from it.
  Stmt receive(const TileOp& op) const;

 private:
  struct PushBuffer {
    int64_t members = 0;
    int64_t count = 0;  ///< elements of the largest source
    BufferRef slots;    ///< (2, members, count)
    BufferRef arrivals;
    BufferRef half;  ///< for each thread: which half of `slots` is in use
  };
  using Key = std::pair<std::string, std::string>;  // axes, dtype

  Key key_of(const TileOp& op) const;
  const PushBuffer& buffer_of(const TileOp& op) const { return buffers_.at(key_of(op)); }
  Expr half_of(const PushBuffer& buffer, const VarRef& tx) const;

  const Kernel& kernel_;
  const MeshShape& mesh_;
  std::map<Key, PushBuffer> buffers_;
  std::unordered_set<const TileOp*> pushed_;
};

}  // namespace helve
