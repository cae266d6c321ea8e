// What is still to be divided among threads, in a kernel in thread form.
// A program may be in thread form from the beginning, but not in part: a GPU has no code for such a loop, nor memory of
// a block in registers of a thread.
#pragma once

#include <string>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// Throws NoSchedule, at `span`, if the statement contains a loop over elements outside of T.threads loops; `operation`
/// is what the user wrote, null for the loop itself. Of what the user wrote, local memory outside of these loops is
/// refused too, and shared memory inside of them.
void refuse_undivided(const Stmt& s, const TileOp* operation, const Span& span);

}  // namespace helve
