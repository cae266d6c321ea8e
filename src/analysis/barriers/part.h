// A kernel as a tree of what matters to barriers.
// Statements that all threads run together are leaves with their accesses; loops and branches of the block are parts
// with parts of their own, so that a barrier can be put in, or taken out, without reading the program again.
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
  /// The statement; for Accesses of a bound or condition, the one that it belongs to. Null for a Sequence.
  Stmt stmt;
  bool is_head = false;     ///< Accesses: of the condition or the bounds of the statement, which is another part
  bool is_inserted = false;  ///< Barrier: not of the given program
  bool is_dropped = false;   ///< Barrier: taken out again
  std::vector<AccessId> accesses;  ///< Accesses
  std::vector<AccessId> copies;    ///< of these, begun here and made later
  std::vector<PartRef> parts;  ///< Sequence: in order; Branch: the two bodies; Loop: the body; bodies are Sequences
  const BlockLoop* loop = nullptr;  ///< Loop: itself
  AccessSet all;  ///< what it accesses, seen from where it stands
  Effect effect;  ///< once it has been run
};

/// The parts of the kernel's body, a Sequence.
PartRef parts_of(const Kernel& kernel, AccessTable& table);

/// The statement that a Sequence is now; `before` itself when it is that still.
Stmt statement_of(const Part& sequence, const Stmt& before);

/// The first part, in program order, with an access that is `id` as seen from that one's loop; null if there is none.
const Part* part_with(const Part& part, AccessId id, AccessTable& table);

/// The effect from those of its parts.
Effect effect_of(const Part& part, AccessTable& table);
/// The same where something else knows those.
Effect effect_of(const Part& part, AccessTable& table, const std::function<const Effect&(size_t)>& of_part);

}  // namespace helve::barriers
