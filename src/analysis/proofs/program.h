// A function as the accesses it makes, each with the loops and guards on the way to it.
// Questions about bounds and about races read the same list, so both mean the same program.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/function.h"
#include "helve/support/diagnostic.h"

namespace helve::proofs {

/// A loop (variables over begins and extents), a value that changes (a variable alone), a value too large to stand for
/// its name (a variable and its value), a guard (a condition), or code that may or may not run (nothing of these).
struct Step {
  const StmtNode* stmt = nullptr;  ///< the loop's statement
  std::vector<VarRef> vars;
  std::vector<Expr> begins;
  std::vector<Expr> extents;
  Expr value;
  Expr condition;
  Span span;
};
using StepRef = std::shared_ptr<const Step>;
using Path = std::vector<StepRef>;

/// A box that a statement reads or writes, `begin`s and `extent`s over the variables of the path and the function's
/// own.
struct Touch {
  BufferRef buffer;
  std::vector<Range> ranges;  ///< in elements; in tiles of the buffer when `tiles`
  std::vector<Expr> limits;   ///< where the buffer, or the core's block of it, ends
  bool tiles = false;
  bool write = false;
  StoreMode mode = StoreMode::Write;   ///< of a write
  bool may_pass_end = false;  ///< what lies past the limits is not touched
  const MeshTensor* placed = nullptr;  ///< a tile of the executing core's own block: `ranges` count from its begin
  std::vector<Expr> block_begin;       ///< of `placed`, in elements of the tensor
  std::string text;                    ///< the access as the user wrote it
  const StmtNode* stmt = nullptr;
  Span span;
  Path path;
};

/// Extents that an operation needs equal; `pairs` is nothing when only a call decides what matches what.
struct ShapeClaim {
  std::optional<std::vector<std::pair<Expr, Expr>>> pairs;
  std::string text;
  std::vector<Note> notes;
  Span span;
  Path path;
};

/// A loop whose iterations are independent.
struct IndependentLoop {
  Path path;  ///< ends in the loop
  size_t first, last;  ///< the accesses below it, a part of Program::touches
};

struct Program {
  const Function* function = nullptr;
  std::vector<ShapeClaim> shapes;
  std::vector<Touch> bounds;   ///< what must lie inside
  std::vector<Touch> touches;  ///< what may conflict
  std::vector<IndependentLoop> loops;
  std::unordered_map<const Buffer*, Path> home;     ///< the path to each allocation
  std::unordered_set<const Storage*> constant;  ///< buffers that nothing writes
};

/// Binds of values that do not change are replaced by their values, if these are not too large.
Program collect(const Function& f);

/// Is the loop's promise independence of its iterations?
bool is_independent(const StmtNode& loop);

/// Adds what the step states.
void learn(Facts& facts, const Step& step, const std::unordered_set<const Storage*>& constant);

/// Does the value of `e` depend on contents that change?
bool changes(const Expr& e, const std::unordered_set<const Storage*>& constant);

}  // namespace helve::proofs
