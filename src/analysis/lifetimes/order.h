// Which shared buffers no barrier keeps apart.
// Bytes may change hands only behind a barrier that the program has.
#pragma once

#include "buffer_set.h"
#include "helve/ir/tensor/stmt.h"

namespace helve::lifetimes {

/// Adds those pairs of buffers of which one may be accessed after the other without a barrier of the block between, or
/// before the block has waited for a copy that accesses the other.
void add_unordered(const Kernel& kernel, const Numbers& numbers, Interference& interference);

}  // namespace helve::lifetimes
