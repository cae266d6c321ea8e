// Matrices between memory and registers: ldmatrix and stmatrix.
// The instructions of a warp move 8 x 8 elements of 16 bits, a row from each address that a thread names; which layouts
// of registers they serve, and which row is whose, is arithmetic on the layout.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// The elements of a matrix along a dimension, 8 rows of 8; the bytes of a row lie together in memory.
inline constexpr int64_t kMatrixRows = 8;

/// How a warp moves a tile of two dimensions, the second side by side in memory.
struct MatrixMove {
  /// One digit of a matrix's place: its value times `step` is where it begins along `dim`. The value is
  /// (number / divisor) % extent, of the matrix in its warp or of the thread.
  struct Digit {
    size_t dim;
    int64_t step;
    int64_t divisor;
    int64_t extent;
  };
  bool transposed = false;  ///< neighbouring registers are neighbours along the first dimension
  int64_t matrices = 0;  ///< of one warp: matrix m is in registers 2 m and 2 m + 1 of each thread
  int64_t at_once = 1;  ///< that one instruction moves: 4, 2 or 1
  std::vector<Digit> registers;  ///< of the matrix's number
  std::vector<Digit> warps;  ///< of the thread's number
};

/// The move of a region of `shape` that `layout` (on tx and reg) spreads over a block. A thread of a warp has two
/// elements of each matrix: those of column pair t % 4 of row t / 4, of its transpose in a transposed move. Nothing,
/// with the reason, for any other layout.
std::optional<MatrixMove> matrix_move(const Layout& layout, const std::vector<int64_t>& shape, std::string* reason);

/// The element of the region at which the row begins that thread `tx` names for `move.at_once` matrices from number
/// `first` on.
std::vector<Expr> matrix_row(const MatrixMove& move, const Expr& tx, int64_t first);

inline bool moves_matrices(const TileOp& op) {
  return op.op == TileOpcode::LoadMatrix || op.op == TileOpcode::StoreMatrix;
}

/// The parts of a LoadMatrix or a StoreMatrix: the region in memory, the fragment or a part of it, and the layout of
/// one on the other.
struct MatrixOperands {
  const Region* memory;
  const Region* fragment;
  const Layout& layout;

  /// Has the fragment a dimension of threads and one of registers? Before threads divide it, it has the layout itself.
  bool divided() const { return !fragment->buffer->layout; }
};
MatrixOperands matrix_operands(const TileOp& op);

/// Registers of a fragment, the same of every thread, as many as the layout spans.
struct FragmentPart {
  Layout layout;  ///< of the part, from register 0 on
  int64_t first_register = 0;  ///< of the fragment's
};

/// The part of a fragment with a layout that `region` is: constant bounds, and every thread holds some of its elements.
/// Nothing, with the reason, for other regions.
std::optional<FragmentPart> fragment_part(const Region& region, std::string* reason);

}  // namespace helve
