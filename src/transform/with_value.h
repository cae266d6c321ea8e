// A statement in which a variable has a known value.
// A pass that copies a body for one iteration leaves no computation with constants, which would parse back as another.
#pragma once

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// The statement with `value` in place of `var`; expressions that used it are simplified, others are untouched. Code
/// that certainly faults is removed (certain_faults.h).
Stmt with_value(const Stmt& s, const Var* var, const Expr& value);

}  // namespace helve
