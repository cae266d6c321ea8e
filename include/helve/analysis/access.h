// Every access of a program, with all that stands around it: the one answer to who touches what, where and when.
// Questions about bounds, races, padding, pipelines, contraction, memory traffic and banks read the same list, so that
// all of them mean the same program. Program order is the order of the list; an access is made once for each point of
// its path.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/copy_queue.h"
#include "helve/ir/tensor/function.h"

namespace helve {

/// A loop (variables over begins and extents), a value that changes (a variable alone), a value too large to stand for
/// its name (a variable and its value), a guard (a condition), or code that may or may not run (nothing of these).
struct Step {
  const StmtNode* stmt = nullptr;  ///< of a loop, or of a guard that a statement is; null: operands or names behind it
  size_t visit = 0;  ///< of that statement
  std::vector<VarRef> vars;
  std::vector<Expr> begins;
  std::vector<Expr> extents;
  Expr value;
  Expr condition;
  Span span;
};
using StepRef = std::shared_ptr<const Step>;
/// From the function's body inwards. A step stands on one path only: two visits of a shared statement have two.
using Path = std::vector<StepRef>;

/// Who makes an access. What an instance of the path is run by, the path says: a block by the kernel's step, a thread
/// by that of a T.threads loop; statements outside of such a loop are run by all threads of the block alike.
enum class Executor {
  Path,  ///< who runs the statement
  Warps,  ///< each warp of the block a part of the box, its lanes together: instructions on matrices
  Async  ///< TMA or tensor cores, units beside the threads, which program order orders with none
};

/// A box that a statement reads or writes, `begin`s and `extent`s over the variables of the path and the function's
/// own. Names of values that do not change are replaced by these, if they are not too large.
struct Access {
  BufferRef buffer;
  std::vector<Range> ranges;  ///< in elements; in tiles of the buffer when `tiles`
  std::vector<Expr> limits;  ///< where the buffer, or the core's block of it, ends
  bool tiles = false;
  bool write = false;
  /// Of a write, and of the read that an update makes of its element. What is atomic is a write alone.
  StoreMode mode = StoreMode::Write;
  Executor executor = Executor::Path;
  std::optional<CopyQueue> queue;  ///< of what begins here, and has made the access when a wait of it is over
  bool may_pass_end = false;  ///< what lies past the limits is not touched
  const MeshTensor* placed = nullptr;  ///< a tile of the executing core's own block: `ranges` count from its begin
  std::vector<Expr> block_begin;  ///< of `placed`, in elements of the tensor
  std::vector<Range> written;  ///< the ranges as they stand in the program
  Expr value;  ///< that a Store stores, an update after its operator, with values for names like `ranges`
  const ExprNode* load = nullptr;  ///< that makes it, if an expression does
  const StmtNode* stmt = nullptr;  ///< that makes it, or that the expression is of
  size_t visit = 0;  ///< number of that statement's visit; shared nodes have one a visit
  Span span;
  Path path;
};

/// Does the order of two accesses to one element matter? One of them writes, and they are no atomic updates of one
/// buffer by one operator, which commute. Of two buffers that may share memory nothing commutes, as their types may
/// differ. For whatever describes an access.
template <class A, class B>
bool conflict(const A& a, const B& b) {
  const bool commute = a.write && b.write && a.buffer == b.buffer && a.mode == b.mode && is_atomic(a.mode);
  return (a.write || b.write) && !commute;
}

/// The access as the user wrote it: "A[i, 0:n]".
std::string text_of(const Access& access);

/// A tile operation, as it stands and with the values of names in it.
struct Operation {
  const TileOp* op;
  Ref<const TileOp> known;
  Path path;
};

/// A loop whose iterations are independent.
struct IndependentLoop {
  Path path;  ///< ends in the loop
  size_t first, last;  ///< the accesses below it, a part of AccessModel::accesses
};

/// A visit of a statement of a region.
struct Visit {
  const StmtNode* stmt;
  size_t end;  ///< the visits of its parts are numbered up to here
  Path path;  ///< to the statement
};

/// Visits of statements are numbered from 0 in program order, a statement before its parts: a walk of the same program
/// that counts them meets the same numbers.
struct AccessModel {
  const Function* function = nullptr;  ///< null: of a part of one
  std::vector<Access> accesses;  ///< what may conflict, in program order
  std::vector<Access> bounds;  ///< what must lie inside its limits
  std::vector<Operation> operations;
  std::vector<IndependentLoop> loops;
  std::unordered_map<size_t, StepRef> loop_at;  ///< the step of every loop, by its visit
  std::unordered_map<const Buffer*, Path> home;  ///< the path to each allocation
  std::unordered_set<const Storage*> constant;  ///< buffers that are read, and that nothing writes
  std::unordered_set<const Var*> names;  ///< that stay: of values that change, are too large, or are no indices
  std::vector<Visit> visits;  ///< of a region only
  Path around;  ///< of a region: the path to it, with which all paths begin

  /// Does `e` use a name that stays?
  bool names_stay(const Expr& e) const;
};

/// The accesses of a function, which must outlive the model.
AccessModel access_model(const Function& f);

/// The accesses of a part of a program, which must outlive the model: of what is defined around it nothing is known,
/// and constant is what nothing below it writes. An annotated operand of mesh_tensor_copy is its whole tensor there.
/// `bounds` stays empty. `is_asked`: of which buffers there are accesses; null: of all.
using BufferFilter = bool (*)(const Buffer&);
AccessModel access_model(const Stmt& part, const std::vector<MayAlias>& may_alias = {},
                         BufferFilter is_asked = nullptr);

/// The accesses of one statement of a function, both of which must outlive the model; it is visit 0. Of what stands
/// around it, paths have what nothing in the function changes; constant is what nothing below it writes. With
/// `instead`, the accesses of that in the statement's place. Where one node stands at several places, the first is
/// meant.
AccessModel access_model(const Function& f, const Stmt& region, const Stmt& instead = {});

/// Is the loop's promise independence of its iterations?
bool is_independent(const StmtNode& loop);

/// Adds what the step states.
void learn(Facts& facts, const Step& step, const std::unordered_set<const Storage*>& constant);

/// Does the value of `e` depend on contents that change?
bool changes(const Expr& e, const std::unordered_set<const Storage*>& constant);

}  // namespace helve
