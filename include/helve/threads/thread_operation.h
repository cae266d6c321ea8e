// Tile operations that are divided among the threads of a block.
// Each is a row of functions: its demands on layout inference, and its division. Other operations are lowered before,
// or access shared memory only and are executed by the block.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/region.h"
#include "helve/ir/tensor/tile_op.h"
#include "helve/threads/divide.h"

namespace helve {

/// The demands of an operation on the layouts of its operands. With `elements` it is a loop over `extents` for layout
/// inference, which divides that loop.
struct OperationDemand {
  /// A whole buffer that the loop traverses: dimension k of its region is the loop's dimension dims[k], or has extent 1
  /// (-1).
  struct Elements {
    const Region* region;
    std::vector<int> dims;
    bool written;
  };
  std::vector<Expr> extents;
  std::vector<Elements> elements;
  int reduced = -1;  ///< the dimension of the loop that the result does not have
  bool at_once = false;  ///< each thread holds all of its elements together
  std::vector<std::pair<const Region*, std::string_view>> memory;  ///< operands that must be in shared memory, and why
};

struct ThreadOperation {
  bool (*takes)(const TileOp& op);
  OperationDemand (*demand)(const TileOp& op);
  /// The operation as the program of the threads, by the layouts of the kernel.
  Stmt (*divide)(const TileOp& op, const DividedKernel& kernel, const Facts& facts);
};

/// The row of an operation, or null.
const ThreadOperation* thread_operation(const TileOp& op);

}  // namespace helve
