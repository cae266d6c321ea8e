// The loops that a tile operation means.
// Schedules put an operation in the place of loops, and prove that they are these; how a target computes an operation
// is its own business (dispatch).
#pragma once

#include <optional>
#include <vector>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// A definition of an operation by stores of elements, each in a loop over all its variables. Nothing but the stores
/// has an effect. The operation reads its operands before it writes, and combines the updates of an element in any
/// order, rounding once: so all loops are T.Parallel, although iterations update one element.
struct OperationLoops {
  struct Part {
    Stmt loop;
    std::vector<VarRef> vars;
    bool pads = false;  ///< is it the store of what lies past the end of a source?
  };
  /// In order: what clears the result, then what computes it. Variables are the dimensions of the result, in their
  /// order, and behind them the dimension that is reduced, with the coordinate 0 at the begin of the regions.
  std::vector<Part> parts;
};

/// Of T.gemm, T.copy, T.fill, T.clear and the reductions by an operator that updates have; nothing for others.
/// `swapped`: products are those of B and A, in this order, which are the same.
std::optional<OperationLoops> operation_loops(const TileOp& op, bool swapped = false);

}  // namespace helve
