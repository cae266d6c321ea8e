// What a checked run remembers of every element.
// Times of one clock order all accesses of a run, so that a record is a number and not a tree of executors.
#pragma once

#include <cstdint>
#include <vector>

#include "async_copies.h"
#include "helve/ir/tensor/stmt.h"
#include "helve/support/span.h"

namespace helve::interp {

/// Where an access stands. Accesses of one statement share `statement`; null means that it is alone.
struct Site {
  Span span;
  const StmtNode* statement = nullptr;
};

/// The time of a run; each iteration, synchronisation and allocation begins a new instant.
class Clock {
 public:
  int64_t now() const { return now_; }
  int64_t tick() { return ++now_; }

 private:
  int64_t now_ = 1;
};

/// Executors of what no loop over threads runs: a tile operation of the block, which orders itself; a condition or an
/// extent, which every thread evaluates; a copy that TMA makes; what tensor cores read from memory.
constexpr int64_t kNoThread = -1;
constexpr int64_t kEveryThread = -2;
constexpr int64_t kTma = -3;
/// Of what T.st_async has stored: once the core has waited for it, all its threads see it.
constexpr int64_t kStoredHere = -4;
constexpr int64_t kTensorCores = -5;
/// Of what TMA has copied to a slot of a ring: each thread that takes the slot waits for it.
constexpr int64_t kRing = -6;

/// One access: when, on which core, where in the program. The instant 0 is before the run.
struct Mark {
  int64_t time = 0;
  int64_t core = 0;
  const Site* site = nullptr;
  StoreMode mode = StoreMode::Write;  ///< of a store
  int64_t thread = kNoThread;         ///< of memory that threads share: who accessed it
  CopyNumber copy;                    ///< the asynchronous copy that it is part of
  bool arrives = false;               ///< it is what that copy writes to global memory
  const void* name = nullptr;         ///< of memory in which buffers have places: the instance that was accessed
};

/// What an executor has done before a barrier or a fence. A part of an asynchronous copy is done when the copy is
/// complete.
struct Passed {
  int64_t time = 0;
  Completed copies;
  bool contains(const Mark& mark) const { return mark.time < time && copies.contains(mark.copy, mark.arrives); }
  static bool precedes(const Passed& a, const Passed& b) { return a.time < b.time; }
};

struct LoopLabel;

/// The loop of which several iterations left an element, and when it began; null for none.
struct Left {
  int64_t begin = 0;
  const LoopLabel* loop = nullptr;
};

/// The accesses of an element that can still take part in a race, and whether it holds a value.
struct Cell {
  Mark write;
  std::vector<Mark> reads;
  Flight into;  ///< the asynchronous copy that wrote it last
  std::vector<Flight> from;  ///< of each queue the youngest that read it
  std::vector<Mark> updates;  ///< atomic stores since `write`
  bool undefined = false;  ///< what was written last is a copy of an element that was never written
  Left left;               ///< of memory that is private, or was
};

/// The cells of one instance. A mark from before `born` is one of an earlier life of the memory and does not count.
class Shadow {
 public:
  explicit Shadow(Clock& clock) : clock_(clock) {}

  /// Memory allocated at `span`: `count` elements from offset `low`, none of them written.
  void begin(int64_t low, int64_t count, const Span& span);
  /// Memory of an argument: all elements are written.
  void adopt(int64_t low, int64_t count);
  /// All contents become undefined; `loop` may be null.
  void forget(const Span* loop);

  Cell& cell(int64_t offset) { return cells_[static_cast<size_t>(offset - low_)]; }
  bool counts(const Mark& mark) const { return mark.time >= born_; }
  /// The element was never written, or holds a copy of one that was not.
  bool undefined(const Cell& cell) const {
    return cell.undefined ? counts(cell.write) : !written_ && !counts(cell.write);
  }

  const Span& allocated() const { return allocated_; }
  const Span& forgotten() const { return forgotten_; }
  /// A new instant of the run.
  int64_t tick() { return clock_.tick(); }

 private:
  Clock& clock_;
  std::vector<Cell> cells_;
  int64_t low_ = 0;
  int64_t born_ = 1;
  bool written_ = false;
  Span allocated_;
  Span forgotten_;
};

}  // namespace helve::interp
