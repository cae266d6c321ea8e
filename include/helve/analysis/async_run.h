// Runs of elements that cp.async copies from global to shared memory without registers.
// Dispatch and code generation need the same answers.
#pragma once

#include <string>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/stmt.h"

namespace helve {

/// The elements that a copy of one run moves: the extent of its last dimension.
int64_t run_length(const TileOp& op);

/// Is the copy of one run, under `facts`, of 4, 8 or 16 bytes from a global tensor to shared memory, both aligned to
/// that size relative to their bases, not converted, and past the tensor's end either entirely or not at all, where it
/// is filled with 0? `pad` is the value of the copy there. Gives the reason in `reason` if not.
bool is_async_run(const TileOp& op, const Expr& pad, const Facts& facts, std::string* reason);

/// The condition under which the first element of the region exists; null if it is known to.
Expr begins_inside(const Region& region, const Facts& facts);

}  // namespace helve
