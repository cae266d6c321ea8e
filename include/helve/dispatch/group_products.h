// Does a kernel multiply by the tensor cores of warpgroups?
// Passes that copy ahead of such products, or behind them, ask it before operations are lowered.
#pragma once

#include "helve/dispatch/schedule_table.h"

namespace helve {

/// Is there a product below `s` that is one by warpgroups, or becomes one on the machine of `context`? Layouts that
/// products demand have been placed.
bool multiplies_by_groups(const Stmt& s, const LoweringContext& context);

}  // namespace helve
