// Names resolved to slots while a function is prepared for running.
// Variables and buffers are found once, by identity; a running program only indexes arrays.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "async_copies.h"
#include "helve/interp/interp.h"
#include "helve/ir/tensor/copy_queue.h"
#include "storage.h"

namespace helve::interp {

class Trace;

/// The bytes that T.st_async has stored to a core, counted by an array of mbarriers.
struct Arrivals {
  /// A store before the core's wait: by whom, and the time before which that core's accesses are visible after the
  /// wait.
  struct Sender {
    int64_t core = 0;
    int64_t visible = 0;
  };
  int64_t bytes = 0;
  std::vector<Sender> senders;
};

/// A ring of the block: how many of its slots were acquired, filled, taken and released so far.
struct Ring {
  int64_t acquired = 0;
  int64_t committed = 0;
  int64_t taken = 0;
  int64_t released = 0;
  std::vector<size_t> buffers;  ///< slots of the buffers that copies have filled
};

/// What the blocks of a cluster copy together by one operation: where the region of each of its executions begins in
/// the first block, and how many executions the block at work has made.
struct SharedCopies {
  std::vector<std::vector<int64_t>> begins;
  size_t count = 0;
};

class Fibers;

class VectorAccess;

/// The element of one lane of a vector access, between memory and the lane.
struct LaneValue {
  Scalar value{};
  int64_t offset = 0;   ///< in the instance
  int64_t address = 0;  ///< in memory, in elements
  bool undefined = false;
};

/// The state of one executor: the only one of a function without a mesh, or a core.
struct Frame {
  std::vector<Scalar> vars;
  std::vector<Instance*> buffers;
  std::vector<std::unique_ptr<Instance>> owned;  ///< by buffer slot; null for parameters
  std::vector<int64_t> element;                  ///< the element within the tile that a tile store computes
  int64_t rank = 0;                              ///< the core, row-major
  int64_t block = 0;                             ///< the block of the kernel, row-major
  int64_t blocks = 1;
  AsyncCopies copies;                            ///< begun by the block
  std::vector<Frame>* cores = nullptr;           ///< of the mesh, by rank
  std::unordered_map<size_t, int64_t> home;      ///< the core of a buffer of T.peer, by its slot
  std::unordered_map<size_t, Arrivals> arrivals;  ///< by the slot of the mbarriers
  std::unordered_map<size_t, Ring> rings;  ///< by the queue of the copies that fill their slots
  /// By buffer slot: the instances of a buffer that a ring hands over.
  std::unordered_map<size_t, std::vector<std::unique_ptr<Instance>>> slots;
  std::unordered_map<const TileOp*, SharedCopies> shared_copies;
  Fibers* fibers = nullptr;  ///< the roles of the block, where they run
  std::vector<std::vector<LaneValue>> vectors;    ///< of each vector access
  int64_t lane = 0;                               ///< that runs, of the innermost loop with vector accesses
  Trace* trace = nullptr;  ///< present in a checked run
};

/// The slots of a function and what stands around the statement being prepared.
class Scope {
 public:
  Scope(const FunctionRef& f, const Options& options);

  size_t define(const VarRef& var);
  size_t define(const BufferRef& buffer);
  size_t slot(const Var& var) const;
  size_t slot(const Storage& buffer) const;
  bool defines(const Storage& buffer) const { return slots_.count(&buffer) != 0; }

  /// The number of a queue of asynchronous copies.
  size_t queue(const CopyQueue& queue);
  const CopyQueue& queue(size_t number) const { return queues_[number]; }

  Frame make_frame(int64_t rank) const;

  const Function& function() const { return *function_; }
  bool has_mesh() const { return function_->mesh.has_value(); }
  const MeshShape& mesh() const { return *function_->mesh; }
  const Options& options() const { return options_; }
  /// Accesses are recorded: everything that reads or writes an element goes through the frame's trace.
  bool checked() const { return options_.check.any(); }

  /// One index variable a mesh axis, the executing core's coordinate.
  const std::vector<VarRef>& core() const { return core_; }

  /// Once a step: ends a run that has made too many, and gives the caller's interrupt its turn now and then.
  void step() const {
    ++steps_;
    if (options_.steps && steps_ > options_.steps) throw OutOfSteps();
    if (options_.interrupt && (steps_ & 255) == 0) options_.interrupt();
  }

  /// Slots of the buffers that the kernel being prepared has allocated so far.
  std::vector<size_t> kernel_buffers;
  /// The tile extents of the store being prepared; null outside tile stores.
  const std::vector<int64_t>* tile = nullptr;
  /// Slots of the variables that name values.
  std::unordered_set<size_t> bound;
  /// The slot of the variable of the innermost loop around what is being prepared, if that counts lanes from 0.
  std::optional<size_t> lane;
  /// The vector accesses of that loop; null if it has no lanes.
  std::vector<const VectorAccess*>* vectors = nullptr;
  size_t vector_slots = 0;  ///< vector accesses so far
  /// Does what is being prepared stand in an iteration of an independent loop of the kernel?
  bool in_iteration = false;
  /// Does it stand in a kernel of which each core has blocks of its own?
  bool core_blocks = false;
  /// The store or tile operation being prepared; null outside of one.
  const StmtNode* statement = nullptr;

 private:
  FunctionRef function_;
  Options options_;
  std::vector<VarRef> core_;
  std::unordered_map<const Var*, size_t> vars_;
  std::unordered_map<const Storage*, size_t> slots_;
  std::vector<BufferRef> buffers_;
  std::vector<CopyQueue> queues_;
  mutable int64_t steps_ = 0;
};

/// Row-major coordinates of `linear` in `extents`.
std::vector<int64_t> coordinates_of(int64_t linear, const std::vector<int64_t>& extents);
/// The other way round; nothing if there is no such place.
std::optional<int64_t> rank_of(const std::vector<int64_t>& at, const std::vector<int64_t>& extents);

}  // namespace helve::interp
