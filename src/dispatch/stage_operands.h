// Operations whose operands may share memory with their result.
// An operation reads everything before it writes; if two names may share memory, operands are first copied to memory of
// the operation.
#pragma once

#include <vector>

#include "helve/ir/tensor/function.h"
#include "helve/support/diagnostic.h"

namespace helve {

/// The statements that do what `op` does, none of which reads memory that it may write under another name: allocations,
/// copies and the operation on the copies. Empty if `op` itself needs no copies. `reasons` receives the reasons if
/// there are no such statements for an operation that needs them.
std::vector<Stmt> stage_operands(const TileOp& op, const Function& f, std::vector<Note>* reasons);

}  // namespace helve
