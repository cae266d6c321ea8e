// The accesses of a block's threads, equal ones as one.
// Programs repeat themselves: what threads do to an element is asked once for all statements that do the same, and a
// loop that is left behind is no more than a range of its variable, so that one loop after another adds nothing new.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "helve/arith/interval.h"
#include "helve/arith/residue.h"
#include "helve/ir/tensor/function.h"
#include "helve/ir/tensor/stmt.h"

namespace helve::barriers {

/// begin <= var < begin + extent. A null end is some value.
struct VarRange {
  VarRef var;
  Expr begin;
  Expr extent;
};

/// A loop of the block, which all threads run together; the outermost one stands for the kernel and has no parent.
struct BlockLoop {
  const BlockLoop* parent = nullptr;
  size_t depth = 0;  ///< the number of loops around, itself included
  std::vector<VarRange> ranges;  ///< none for a `while`
};

/// Do the variables run through the range at least once, whatever the others are?
bool is_never_empty(const VarRange& range);

/// Does the loop run at least once, whatever the arguments are?
bool runs(const BlockLoop& loop);

/// What one statement does to one element for each thread, in the variables of the loops around.
struct Access {
  BufferRef buffer;
  bool write = false;
  StoreMode mode = StoreMode::Write;  ///< of a write
  const BlockLoop* loop = nullptr;    ///< the innermost around
  std::vector<VarRange> inner;        ///< loops of the thread, the threads, and names whose value is not known
  VarRef thread;  ///< one of `inner`; null: by all threads, or by the copy engine, which is ordered
                  ///< with no thread by the program
  std::vector<Expr> indices;  ///< null where data decides
  std::vector<Expr> conditions;
  bool exact = true;  ///< nothing was left out of the conditions and ranges, and no value is unknown
};

/// A number of the table.
using AccessId = uint32_t;

/// An index as base + offset: the base in variables from outside of the access, the offset in those of its own.
struct Place {
  std::optional<uint32_t> base;  ///< equal numbers are equal expressions; nothing where data decides
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

  /// The kernel's own; loops of the same place and range are one object.
  const BlockLoop* kernel_loop();
  const BlockLoop* loop(const BlockLoop* parent, const Object* identity, std::vector<VarRange> ranges);
  /// `name` has some value, one for each iteration of the loop.
  void define_unknown(const VarRef& name, const BlockLoop* loop);

  /// The access with its own variables under names of the table; parts that load are left out of it.
  AccessId intern(Access access);
  /// As it is seen from outside of the loops that are deeper than `depth`: their variables are its own.
  AccessId seen_from(AccessId id, size_t depth);

  const Access& access(AccessId id) const { return entries_[id].access; }
  const std::vector<Place>& places(AccessId id) const { return entries_[id].places; }
  size_t depth(AccessId id) const { return entries_[id].access.loop->depth; }
  /// A small number for each memory: tensors that may share theirs have one.
  uint32_t memory(AccessId id) const { return entries_[id].memory; }
  /// The loop or name of this depth, if it is one of the block.
  std::optional<size_t> depth_of(const Var* var) const;

 private:
  struct Entry {
    Access access;
    uint32_t memory;
    std::vector<Place> places;
    std::optional<AccessId> outside;  ///< as it is seen from outside of its innermost loop
  };
  struct Expressions;

  void keep_mentioned(Access& access);
  void rename(Access& access);
  std::vector<uint64_t> key_of(const Access& access);
  std::vector<Place> places_of(const Access& access);
  AccessId outside(AccessId id);

  std::unique_ptr<Expressions> expressions_;
  std::vector<std::unique_ptr<BlockLoop>> loops_;
  std::map<std::vector<uint64_t>, const BlockLoop*> known_loops_;
  std::vector<Ref<const Object>> keep_;  ///< whose addresses are keys
  std::unordered_map<const Var*, size_t> depths_;  ///< of loops' variables and unknown names
  std::unordered_map<const Buffer*, uint32_t> memories_;
  uint32_t memory_count_ = 0;
  std::map<std::pair<uint64_t, size_t>, VarRef> names_;  ///< by type and number
  std::map<std::vector<uint64_t>, AccessId> known_;
  std::vector<Entry> entries_;
};

}  // namespace helve::barriers
