// The loop whose iterations become blocks of a core's GPU.
// Cutting a kernel asks what spreading it will ask.
#pragma once

#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

bool is_persistent_loop(const Stmt& s);

/// The one Persistent loop among the statements of a kernel, if every block may execute all that stands around it:
/// that touches only the block's own memory, and reads of other memory what none of the statements writes. Else null.
const For* core_loop(const std::vector<Stmt>& stmts, const std::vector<MayAlias>& may_alias);

}  // namespace helve
