// What a lowered program tells the memory system: stores around the caches, and prefetches.
// Neither has an effect on results, so a program means the same without.
#pragma once

#include "helve/ir/tensor/function.h"

namespace helve {

/// The function with ordinary stores and no prefetches, as passes expect it.
FunctionRef without_memory_hints(const FunctionRef& f);

}  // namespace helve
