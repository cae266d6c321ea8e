// Does a kernel access what TMA has written to global memory?
// Where it does not, a wait for a store ends as soon as the source has been read.
#pragma once

#include "helve/ir/tensor/function.h"
#include "helve/ir/tensor/stmt.h"

namespace helve {

/// May the kernel, in thread form, access what TMA has written to global memory before? A block's own accesses are
/// compared element by element; cores of one kernel may access what other cores' TMA has written.
bool accesses_stored_results(const FunctionRef& f, const Kernel& kernel);

}  // namespace helve
