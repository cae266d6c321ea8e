// Private arrays with subscripts that are known at run time only: they are in memory, not in registers.
// NVVM moves a load of such an array out of a loop that contains inline assembly as if it were aligned to one byte, and
// accesses it byte by byte; ptxas then sometimes takes a byte for a 16-bit element. Arrays declared volatile are
// compiled correctly.
#pragma once

#include <unordered_set>

#include "helve/ir/tensor/stmt.h"

namespace helve::cuda {

/// The Local and Fragment buffers that a kernel's body reads and accesses by loads and stores only, at least once with
/// a subscript that does not become constant by unrolling. The first subscript of a fragment is the thread and does not
/// count. `registers`: the words of an array that a thread may keep in registers.
std::unordered_set<const Buffer*> indexed_arrays(const Stmt& body, int64_t registers);

}  // namespace helve::cuda
