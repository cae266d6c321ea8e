// Private arrays that are subscripted by numbers that only the run knows: they stand in memory, not in registers.
// NVVM takes an element of such an array out of a loop whose body holds inline assembly as if it were aligned to one
// byte, and loads and stores it byte by byte; ptxas then now and then takes a byte for an element of 16 bits. An array
// that is volatile stays as it is written.
#pragma once

#include <unordered_set>

#include "helve/ir/tensor/stmt.h"

namespace helve::cuda {

/// The Local and Fragment buffers that a kernel's body reads and that loads and stores alone touch, at least one of
/// them at a subscript that stays no constant when loops are unrolled. The first subscript of a fragment is the thread
/// and does not count.
std::unordered_set<const Buffer*> indexed_arrays(const Stmt& body);

}  // namespace helve::cuda
