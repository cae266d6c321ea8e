// Operations whose operands may share memory with their result.
// An operation reads everything before it writes; under two names that is kept by reading into memory of its own first.
#pragma once

#include <vector>

#include "helve/ir/tensor/function.h"
#include "helve/support/diagnostic.h"

namespace helve {

/// The statements that do what `op` does, none of which reads memory that it may write under another name: allocations,
/// copies and the operation on what was copied. Empty when `op` is such a statement itself. `reasons` says why there
/// are none for an operation that needs them.
std::vector<Stmt> stage_operands(const TileOp& op, const Function& f, std::vector<Note>* reasons);

}  // namespace helve
