// Tile operations that stay what they are until the threads of their block are known.
// Each is one row of functions: what layout inference has to know of it, and how it is divided among the threads. Any
// other operation is lowered before, or touches shared memory alone and is one of the whole block.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/region.h"
#include "helve/ir/tensor/tile_op.h"
#include "helve/threads/divide.h"

namespace helve {

/// What an operation asks of the layouts of its operands. With `elements` it is a loop over `extents` to layout
/// inference, which divides that loop.
struct OperationDemand {
  /// A whole buffer that the loop goes through: dimension k of its region is the loop's dimension dims[k], or has
  /// extent 1 (-1).
  struct Elements {
    const Region* region;
    std::vector<int> dims;
    bool written;
  };
  std::vector<Expr> extents;
  std::vector<Elements> elements;
  int reduced = -1;      ///< the dimension of the loop that the result does not have
  bool at_once = false;  ///< each thread holds all of its elements together
  std::vector<std::pair<const Region*, std::string_view>> memory;  ///< what must stand in shared memory, and why
};

struct ThreadOperation {
  bool (*takes)(const TileOp& op);
  OperationDemand (*demand)(const TileOp& op);
  /// The operation as the program of the threads; its layouts are the kernel's.
  Stmt (*divide)(const TileOp& op, const DividedKernel& kernel, const Facts& facts);
};

/// The row of an operation, or null.
const ThreadOperation* thread_operation(const TileOp& op);

}  // namespace helve
