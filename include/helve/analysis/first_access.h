// What a function does first to a tensor: read it, or write it.
// A tensor whose contents matter cannot be allocated by the call that it is an argument of.
#pragma once

#include "helve/ir/tensor/function.h"

namespace helve {

/// Is the first access to the buffer a read, on every path that accesses it? Loops are taken to run, and any element
/// counts: before the first access nothing is written. Loads that an operator may skip make it false.
bool is_read_first(const Stmt& s, const Buffer& buffer);

}  // namespace helve
