// What a lowered program tells the memory system: stores around the caches, and prefetches.
// Neither has an effect on results, so a program means the same without.
#pragma once

#include "helve/ir/tensor/function.h"

namespace helve {

/// The function with ordinary loads and stores and no prefetches, as passes expect it; with `keeps_scheduled`, for
/// targets that have them, prefetches stay whose innermost loop is one of a schedule (For::scheduled).
FunctionRef without_memory_hints(const FunctionRef& f, bool keeps_scheduled);

/// The statement with an access for each lane in place of vector accesses.
Stmt lane_by_lane(const Stmt& s);

}  // namespace helve
