// The number of blocks that a machine runs side by side, as a variable that a call binds.
// It is one variable for all functions, so that a function and what it calls mean the same number.
#pragma once

#include "helve/ir/expr/expr.h"

namespace helve {

/// T.multiprocessors(): an index of at least 1. The multiprocessors of a GPU, the threads of the pool on a CPU; a
/// function that uses it has it among its dynamic extents.
const VarRef& multiprocessors();

/// What it is under the interpreter.
constexpr int64_t kInterpretedMultiprocessors = 4;

inline bool is_multiprocessors(const ExprNode& e) { return &e == multiprocessors().get(); }

}  // namespace helve
