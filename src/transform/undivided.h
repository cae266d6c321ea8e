// Loops that are still to be divided among threads, in a kernel that is written for its threads.
// A program may be in thread form from the beginning, but not half of it: a GPU has no code for such a loop.
#pragma once

#include <string>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// NoSchedule, at `span`, where the statement holds a loop over elements that stands in no T.threads loop; `operation`
/// is what the user wrote, null for the loop itself.
void refuse_undivided(const Stmt& s, const TileOp* operation, const Span& span);

}  // namespace helve
