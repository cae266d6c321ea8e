// Boxes of elements that are copied or reduced from some addresses to others, in the memory of this process.
// Collectives and redistributions are lists of such moves; one loop executes them all, on the pool where they are
// large.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "helve/runtime/dlpack.h"
#include "helve/runtime/interrupt.h"
#include "helve/runtime/plan.h"

namespace helve::runtime {

struct SourceRows;
struct TargetRows;

/// The strides, in elements, of a box that lies in one piece, the last dimension fastest.
std::vector<int64_t> compact_strides(std::span<const int64_t> extents);

/// A list of moves, each of a box: element i of every target = op over element i of all sources, in their order.
///
/// A move may write the addresses that it reads, element by element; no move may read or write what another one
/// writes.
class BoxMoves {
 public:
  /// Copies without an operator. UserError ReductionDType for a dtype that has no such reduction.
  BoxMoves(DLDataType dtype, std::optional<ReduceOp> op);

  /// A form of moves: extents, and strides in elements of all sources and of all targets. Its number: 0, 1, ...
  size_t add_box(std::span<const int64_t> extents, std::span<const int64_t> source_strides,
                 std::span<const int64_t> target_strides);
  /// The first element of a source or target of the move that is being made.
  void add_source(const std::byte* source) { sources_.push_back(source); }
  void add_target(std::byte* target) { targets_.push_back(target); }
  /// The sources and targets added since the last move form one move; without an operator it has one source. Its box
  /// may be added later.
  void end_move(size_t box);

  bool empty() const { return moves_.empty(); }
  /// All sources, to be replaced before a run.
  std::span<const std::byte*> sources() { return sources_; }
  std::span<std::byte* const> targets() const { return targets_; }

  /// Executes them all, as often as it is called.
  void run(InterruptPoll* poll);

  /// The bytes that are read or written, whichever are more; small lists are executed by the caller alone.
  int64_t bytes_moved() const;
  static constexpr int64_t kParallelBytes = 1 << 18;  ///< below it, waking the pool costs more than it gains

 private:
  struct Dim {
    int64_t extent, source, target;  ///< strides in bytes
  };

  /// A box as rows, in bytes: dimensions of extent 1 are gone, adjacent ones merged where both sides are contiguous,
  /// those of the largest strides of targets first. Where they copy, short contiguous runs are one wide element.
  struct Rows {
    size_t first = 0, rank = 0;  ///< in dims_: of the rows' numbering
    int64_t count = 1;
    int64_t length = 1;  ///< elements of a row
    int64_t source_step = 0, target_step = 0;
    int64_t element = 0;  ///< bytes
  };

  struct Move {
    size_t box;
    size_t first_source, first_target;
    size_t sources, targets;
    int64_t first_unit = 0;  ///< of all moves
  };

  static int64_t rows_of_unit(const Rows& rows);
  static int64_t pieces_of_row(const Rows& rows);
  void run_unit(const Move& move, int64_t unit) const;
  void run_piece(const Move& move, const Rows& rows, int64_t source, int64_t target, int64_t count) const;

  int64_t bytes_;
  void (*reduce_)(const SourceRows&, const TargetRows&, int64_t) = nullptr;  ///< null: copies
  std::vector<Dim> dims_;
  std::vector<Rows> rows_;
  std::vector<const std::byte*> sources_;
  std::vector<std::byte*> targets_;
  std::vector<Move> moves_;
};

}  // namespace helve::runtime
