// The accesses of a block's threads, without duplicates.
// Statements that access memory in the same way are analysed once. After a loop its variable is only a range, so a
// sequence of loops over the same elements adds no accesses.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "helve/arith/interval.h"
#include "helve/arith/residue.h"
#include "helve/ir/tensor/copy_queue.h"
#include "helve/ir/tensor/function.h"
#include "helve/ir/tensor/stmt.h"
#include "helve/layout/warp.h"

namespace helve::barriers {

/// begin <= var < begin + extent. A null end is unknown.
struct VarRange {
  VarRef var;
  Expr begin;
  Expr extent;
};

/// A loop of the block, which all threads run together; the outermost one represents the kernel and has no parent.
struct BlockLoop {
  const BlockLoop* parent = nullptr;
  size_t depth = 0;  ///< the number of loops around, itself included
  std::vector<VarRange> ranges;  ///< none for a `while`
};

/// Is the range nonempty for all values of the other variables?
bool is_never_empty(const VarRange& range);

/// Does the loop run at least once, for all arguments?
bool runs(const BlockLoop& loop);

/// The access of one statement to one element for each thread, in terms of the variables of the block's loops around
/// it: an access of the model (analysis/access.h) as it is seen from one of these loops.
struct BlockAccess {
  BufferRef buffer;
  bool write = false;
  StoreMode mode = StoreMode::Write;  ///< of a write
  const BlockLoop* loop = nullptr;    ///< the innermost around
  std::vector<VarRange> inner;        ///< loops of the thread, the threads, and names with unknown values
  VarRef thread;  ///< one of `inner`; null: by all threads, or by none
  bool in_async_proxy = false;  ///< program order orders it with no thread
  /// Values of `thread` from this one on belong to warpgroups, so many to each.
  int64_t first_thread = 0, of_warpgroup = kWarpgroup;
  std::optional<int64_t> warpgroup;  ///< of the thread that starts a copy
  std::vector<Expr> indices;  ///< null if they depend on data
  std::vector<Expr> conditions;
  bool exact = true;  ///< conditions and ranges are complete, and no value is unknown
};

/// An index into the table.
using AccessId = uint32_t;

/// A small number for each queue of asynchronous copies.
using QueueId = uint32_t;

/// An index as base + offset: the base depends on variables from outside of the access, the offset on its own
/// variables.
struct Place {
  std::optional<uint32_t> base;  ///< equal numbers are equal expressions; nothing if it depends on data
  Expr base_value, offset_value;
  size_t depth = 0;  ///< of the innermost loop that the base depends on
  Interval offset;
  Residue step;  ///< of the offset
};

/// The accesses of one function, numbered, without duplicates.
class AccessTable {
 public:
  explicit AccessTable(const Function& f);
  ~AccessTable();
  AccessTable(const AccessTable&) = delete;
  AccessTable& operator=(const AccessTable&) = delete;

  /// From here on loads of this memory, which nothing writes, are values.
  void begin(std::unordered_set<const Storage*> constant) { constant_ = std::move(constant); }
  const std::unordered_set<const Storage*>& constant() const { return constant_; }

  /// The kernel itself; loops of the same place and range are one object.
  const BlockLoop* kernel_loop();
  const BlockLoop* loop(const BlockLoop* parent, const Object* identity, std::vector<VarRange> ranges);
  /// `name` has an unknown value in each iteration of the loop.
  void define_unknown(const VarRef& name, const BlockLoop* loop);

  /// The access with its own variables renamed to those of the table; parts that depend on contents that change are
  /// left out.
  AccessId intern(BlockAccess access);
  /// The access as seen from outside of the loops deeper than `depth`, whose variables become its own.
  AccessId seen_from(AccessId id, size_t depth);
  /// An access to the least box around all accesses in the loop that have the access's bases, whatever their guards and
  /// threads are; nothing if it is the only one, or came after somebody asked.
  std::optional<AccessId> box_around(AccessId id);

  QueueId queue(const CopyQueue& queue);

  const BlockAccess& access(AccessId id) const { return entries_[id].access; }
  const std::vector<Place>& places(AccessId id) const { return entries_[id].places; }
  size_t depth(AccessId id) const { return entries_[id].access.loop->depth; }
  /// A small number for each memory; buffers that may share memory have the same one.
  uint32_t memory(AccessId id) const { return entries_[id].memory; }
  /// The depth of the loop or name, if it is one of the block.
  std::optional<size_t> depth_of(const Var* var) const;

 private:
  struct Entry {
    BlockAccess access;
    uint32_t memory;
    std::vector<Place> places;
    std::optional<AccessId> outside = {};  ///< as seen from outside of its innermost loop
    std::optional<std::optional<AccessId>> box = {};  ///< around all with its bases, once it is known
  };
  struct Expressions;

  /// The buffers have bytes in common.
  void join_memories(const std::vector<BufferRef>& buffers);
  void keep_mentioned(BlockAccess& access);
  void rename(BlockAccess& access);
  std::vector<uint64_t> key_of(const BlockAccess& access);
  std::vector<Place> places_of(const BlockAccess& access);
  AccessId outside(AccessId id);
  bool have_same_bases(AccessId a, AccessId b) const;
  AccessId intern_box(const std::vector<AccessId>& members);

  std::unique_ptr<Expressions> expressions_;
  std::unordered_set<const Storage*> constant_;
  std::vector<std::unique_ptr<BlockLoop>> loops_;
  std::map<std::vector<uint64_t>, const BlockLoop*> known_loops_;
  std::vector<Ref<const Object>> keep_;  ///< keeps the keys alive
  std::unordered_map<const Var*, size_t> depths_;  ///< of loops' variables and unknown names
  std::unordered_map<const Buffer*, uint32_t> memories_;
  uint32_t memory_count_ = 0;
  std::vector<CopyQueue> queues_;
  std::map<std::pair<uint64_t, size_t>, VarRef> names_;  ///< by type and number
  std::map<std::vector<uint64_t>, AccessId> known_;
  std::deque<Entry> entries_;  ///< which stay where they are
};

}  // namespace helve::barriers
