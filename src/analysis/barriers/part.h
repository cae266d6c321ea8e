// A kernel as a tree of the parts that matter to barriers.
// Statements that all threads run together are leaves with their accesses; loops and branches of the block are inner
// nodes. Barriers are inserted and removed without analysing the program again.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "access_table.h"
#include "effect.h"
#include "helve/ir/tensor/stmt.h"

namespace helve::barriers {

struct Part;
using PartRef = std::unique_ptr<Part>;

struct Part {
  enum class Kind { Accesses, Barrier, Wait, Sequence, Branch, Loop };
  Kind kind = Kind::Sequence;
  /// The statement; for Accesses of a bound or condition, the one to which it belongs. Null for a Sequence.
  Stmt stmt;
  bool is_head = false;     ///< Accesses: of the condition or bounds of a statement, which is another part
  bool is_inserted = false;  ///< Barrier: not of the given program
  bool is_dropped = false;   ///< Barrier: removed again, or without a fence
  std::vector<AccessId> accesses;  ///< Accesses
  std::vector<AccessId> copies;    ///< those of them that are issued here and complete later
  QueueId queue = 0;  ///< of the copies, or that a Wait waits for
  std::vector<PartRef> parts;  ///< Sequence: in order; Branch: the two bodies; Loop: the body; bodies are Sequences
  const BlockLoop* loop = nullptr;  ///< Loop: the loop
  AccessSet all;  ///< all its accesses, seen from its place
  Effect effect;  ///< valid after it has been run
};

/// Is the part a T.sync_threads, rather than a collective?
bool is_sync_threads(const Part& part);

/// The parts of the kernel's body, a Sequence.
PartRef parts_of(const Function& f, const Kernel& kernel, AccessTable& table);

/// The statement of a Sequence after insertions and removals; `before` itself if there are none.
Stmt statement_of(const Part& sequence, const Stmt& before);

/// The first part, in program order, with an access that is `id` as seen from its loop; null if there is none.
const Part* part_with(const Part& part, AccessId id, AccessTable& table);

/// The effect of a part, computed from those of its parts.
Effect effect_of(const Part& part, AccessTable& table);
/// The same, where the caller knows the effects of the parts.
Effect effect_of(const Part& part, AccessTable& table, const std::function<const Effect&(size_t)>& of_part);

}  // namespace helve::barriers
