// The accesses of a kernel as barriers see them: by threads of a block, inside loops that the block runs.
// They are those of the access model, in its order; this is the one place that says which threads make them.
#pragma once

#include <unordered_set>
#include <vector>

#include "access_table.h"
#include "helve/analysis/access.h"

namespace helve::barriers {

/// Accesses of some statements.
struct Accesses {
  std::vector<AccessId> all;
  std::vector<AccessId> copies;  ///< those of them that are issued here and complete later
  QueueId queue = 0;             ///< of the copies, which are of one instruction
};

class BlockAccesses {
 public:
  /// Values that are loaded from memory which `kernel` does not write are known to the table from here on.
  BlockAccesses(const Kernel& kernel, const std::vector<MayAlias>& may_alias, AccessTable& table);

  /// Those of the visits before `end` that have not been taken. `loop`: the loop of the block around them.
  Accesses take(size_t end, const BlockLoop* loop);

  /// What the loop of this visit runs over; nothing for a `while`.
  std::vector<VarRange> ranges(size_t visit) const;
  /// Is the value of this name not put in its place?
  bool stays(const Var* name) const { return model_.names.contains(name); }

 private:
  BlockAccess access(const Access& of, const BlockLoop* loop) const;
  void add_box(const Access& of, BlockAccess& out) const;
  void add_matrices(const Access& of, BlockAccess& out) const;
  void add_names(BlockAccess& out) const;
  VarRange range(const Step& step, size_t d) const;

  AccessModel model_;
  AccessTable& table_;
  size_t next_ = 0;
};

}  // namespace helve::barriers
