// The accesses of a checked run.
// Only this class decides whether two accesses race and whether a value may be used.
#pragma once

#include <algorithm>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "helve/interp/interp.h"
#include "helve/support/diagnostic.h"
#include "operators.h"
#include "scope.h"
#include "storage.h"

namespace helve::interp {

class Trace;

enum class LoopOrder { Sequential, Iterations, Blocks };

/// A loop, as named in reports.
struct LoopLabel {
  std::string kind;  ///< "T.Parallel"
  LoopOrder order = LoopOrder::Sequential;
  Span span;
  std::vector<std::pair<std::string, size_t>> vars;  ///< names and variable slots
  bool threads = false;                              ///< an iteration is a thread of the block
};

/// An undefined element that a copy has read. Without an instance the value is defined.
struct Origin {
  const Instance* instance = nullptr;
  int64_t offset = 0;
  const Site* site = nullptr;
};

/// The state of a checked run that all cores share.
class Checker {
 public:
  explicit Checker(const Scope& scope) : scope_(scope) {}

  /// The traces of executors, one per frame; frames do not move.
  void attach(std::vector<Frame>& frames);

  /// The cores synchronize: their accesses so far are visible to all of them.
  void synchronise(const std::vector<Frame*>& cores);

  /// Has core `flight.core` not waited for the copy yet, or, if it writes global memory, only for its source?
  bool in_flight(const Flight& flight, bool arrives) const;

  /// The error with the values of the loop variables of the core that ran last.
  UserError placed(const UserError& error) const;

  Clock& clock() { return clock_; }
  const Checks& checks() const { return scope_.options().check; }
  const CopyQueue& queue(size_t number) const { return scope_.queue(number); }
  const Function& function() const { return scope_.function(); }
  /// Called for each access.
  void step() const { scope_.step(); }
  void set_current(const Trace* trace) { current_ = trace; }

 private:
  const Scope& scope_;
  Clock clock_;
  std::vector<Trace> traces_;
  std::vector<const AsyncCopies*> copies_;  ///< of each core
  const Trace* current_ = nullptr;
};

/// One executor. Active loops form a stack; an iteration is the interval of time since it began.
class Trace {
 public:
  Trace(Checker& checker, const Frame& frame, int64_t cores);

  void make_current() const { checker_->set_current(this); }

  void enter(const LoopLabel& label, std::vector<int64_t> begins, std::vector<int64_t> extents);
  void iterate(int64_t iteration);
  void leave();
  /// The innermost loop.
  Left loop() const { return {levels_[depth_ - 1].begin, levels_[depth_ - 1].label}; }
  /// The threads of the block begin: what was done before is visible to all of them, and to TMA.
  void begin_threads();
  /// The threads of the block synchronize.
  void synchronise_threads();
  /// The threads of each warpgroup synchronize.
  void synchronise_warpgroups();
  /// Each thread of the block executes a proxy fence, which covers what it has written.
  void fence();

  /// Reads an element. If it is undefined, that is reported, or returned in `origin`.
  Scalar read(Instance& instance, int64_t offset, const Site& site, Origin* origin = nullptr);
  void write(Instance& instance, int64_t offset, Scalar value, const Site& site, bool undefined = false);

  /// The following reads and writes are those of this asynchronous copy, or of none, and of a unit beside the threads
  /// (kTma, kTensorCores), or of none (kNoThread).
  void fly(const CopyNumber& copy, int64_t unit) {
    flight_ = copy;
    unit_ = unit;
    adds_ = false;
  }
  /// The following reads and writes are those of this product's sums, to which products in flight may add before it.
  void add_in_order(const CopyNumber& product) {
    fly(product, kTensorCores);
    adds_ = true;
  }
  /// What threads have done with registers is done for the products that follow.
  void fence_registers() { register_fence_ = checker_->clock().tick(); }
  /// An atomic store: the element becomes its previous value, which is returned, combined with `value`.
  Scalar update(Instance& instance, int64_t offset, Scalar value, const Fold& combine, StoreMode mode,
                const Site& site);

  /// T.st_async to the memory of another core, as the store `arrival` to it.
  void send(Instance& instance, int64_t offset, Scalar value, const Flight& arrival, const Site& site, bool undefined);
  /// The time before which all that the core did is ordered before its barrier.
  int64_t before_barrier() const { return barrier_.time; }
  /// What another core did before that time is visible.
  void learn(int64_t core, int64_t time) {
    int64_t& seen = seen_[static_cast<size_t>(core)];
    seen = std::max(seen, time);
  }

  /// The variable in `slot` is bound to a value that came from `origin`.
  void bind(size_t slot, const Origin& origin);
  /// Reports, or returns in `origin`, that the variable is undefined.
  void use(size_t slot, Origin* origin);

  [[noreturn]] void report_undefined(const Instance& instance, int64_t offset, const Site& site) const;

  /// "i=3, j=40, core (0, 1)": the loops of the stack down to `depth`, and the core.
  std::string coordinates(size_t depth) const;
  size_t depth() const { return depth_; }

  void see(const std::vector<int64_t>& seen) { seen_ = seen; }
  const std::vector<int64_t>& seen() const { return seen_; }
  void see_fenced(const std::vector<Passed>& fenced) { fenced_ = fenced; }
  const std::vector<Passed>& fenced() const { return fenced_; }
  int64_t core() const { return core_; }
  Checker& checker() const { return *checker_; }

 private:
  struct Level {
    const LoopLabel* label = nullptr;
    std::vector<int64_t> begins;
    std::vector<int64_t> extents;
    int64_t begin = 0;  ///< when the loop began
    int64_t current = 0;  ///< when its iteration began
    std::vector<std::pair<int64_t, int64_t>> iterations{};  ///< time and number of each, ascending
  };

 public:
  /// The active loops of a role of the block; others have their own.
  struct Stack {
    std::vector<Level> levels;
    size_t depth = 0;
  };
  Stack stack() const { return {levels_, depth_}; }
  void swap_stack(Stack& other) {
    std::swap(levels_, other.levels);
    std::swap(depth_, other.depth);
  }

 private:
  /// The level of a conflict: an independent loop of the stack, another thread since the last barrier, or another core.
  /// Ordered accesses have none.
  static constexpr size_t kOrdered = SIZE_MAX;
  static constexpr size_t kOtherCore = SIZE_MAX - 1;
  static constexpr size_t kOtherThread = SIZE_MAX - 2;
  size_t conflict(const Shadow& shadow, const Mark& earlier, const Mark& later) const;
  /// All that was done up to now.
  Passed passed() const;
  /// The current access to the instance.
  Mark mark_of(const Instance& instance, const Site& site, StoreMode mode = StoreMode::Write) const;

  struct Access {
    Mark mark;
    bool writes;
  };
  void add(Shadow& shadow, std::vector<Mark>& marks, const Mark& mark) const;
  /// Throws if `later` conflicts with one of `earlier`.
  void check(const Instance& instance, int64_t offset, const std::vector<Mark>& earlier, bool writes,
             const Access& later) const;
  /// The present copy reads the element.
  void read_by_copy(Cell& cell, const Site& site) const;
  /// Throws for an access to memory that an unfinished asynchronous copy writes or reads.
  void check_flights(const Instance& instance, int64_t offset, const Cell& cell, const Site& site, bool writes) const;
  [[noreturn]] void report_flight(const Instance& instance, int64_t offset, const Flight& flight, const Site& site,
                                  bool writes, bool copy_writes) const;
  /// Throws if TMA or a tensor core accesses what a thread has written without a fence and a barrier since.
  void check_fences(const Instance& instance, int64_t offset, const Cell& cell, const Site& site, bool writes) const;
  /// Throws if a product takes registers that threads have accessed without a fence since.
  void check_registers(const Instance& instance, int64_t offset, const Cell& cell, const Site& site) const;
  [[noreturn]] void report_unfenced_registers(const Instance& instance, int64_t offset, const Mark& accessed,
                                              bool written, const Site& site) const;
  [[noreturn]] void report_unfenced(const Instance& instance, int64_t offset, const Mark& written, const Site& site,
                                    bool writes) const;
  /// Does the element have a value from one of several iterations of a loop that has ended? Then it is undefined.
  bool left_by_several(const Shadow& shadow, const Cell& cell) const;
  /// May several iterations that the threads of a block run store to an element, as long as none reads it afterwards?
  /// Private memory of the block may have become shared memory.
  bool may_leave_several(const Instance& instance) const;
  /// Does a single thread of the block run the loop, or is it the loop over threads?
  bool is_of_thread(size_t level) const;
  /// Is that execution of the loop still active?
  bool runs(const Left& loop) const;
  void check_write(Instance& instance, int64_t offset, const Mark& mark, Scalar value);
  /// The values that the two writes of a race store.
  struct Values {
    Scalar earlier, later;
  };
  /// Throws for two accesses that conflict at `level`; `values` are those of two writes, or null.
  [[noreturn]] void report_race(const Instance& instance, int64_t offset, size_t level, Access earlier, Access later,
                                const Values* values = nullptr) const;
  /// Who stores which value, or that both store the same.
  std::string values_text(const Instance& instance, size_t level, const Mark& earlier, const Mark& later,
                          const Values& values) const;
  std::string executor(size_t level, const Mark& mark) const;
  static std::string executor_in_block(const Mark& mark);
  /// Cores that hold the same shard of a mesh tensor may all store the same value to it.
  bool replicas(const Buffer& buffer, int64_t core) const;

  Checker* checker_;
  const Frame* frame_;
  int64_t core_;
  std::vector<Level> levels_;  ///< the first depth_ are in use
  size_t depth_ = 0;
  int64_t thread_ = kNoThread;
  Passed barrier_;  ///< when the threads of the block last synchronized
  Passed warpgroup_barrier_;  ///< when those of each warpgroup did
  Passed fence_;  ///< when they last executed a fence
  std::vector<Passed> fenced_;  ///< for each core what it has written that TMA sees here
  std::vector<int64_t> seen_;  ///< for each core the time before which its accesses are visible
  std::unordered_map<size_t, Origin> unset_;
  int64_t register_fence_ = 0;  ///< when the block last executed T.wgmma_fence
  CopyNumber flight_;
  int64_t unit_ = kNoThread;
  bool adds_ = false;  ///< the accesses are those of a product's sums
};

}  // namespace helve::interp
