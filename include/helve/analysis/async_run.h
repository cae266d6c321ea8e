// Runs that the copy units of a GPU move from global to block memory without registers.
// Choosing such a copy and printing it ask the same questions, so they are answered once.
#pragma once

#include <string>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/stmt.h"

namespace helve {

/// The elements that a copy of one run moves: the extent of its last dimension.
int64_t run_length(const TileOp& op);

/// Is the copy of one run, under `facts`, 4, 8 or 16 bytes from a global tensor to shared memory, both aligned to as
/// many, as they are, and past the end of the tensor in all of its elements or in none, where it fills up with 0? `pad`
/// is what the copy has there. Says in `reason` why not.
bool is_async_run(const TileOp& op, const Expr& pad, const Facts& facts, std::string* reason);

/// The condition under which the first element of the region exists; null where it is known to.
Expr begins_inside(const Region& region, const Facts& facts);

}  // namespace helve
