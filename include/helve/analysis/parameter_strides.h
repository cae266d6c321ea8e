// Elements have addresses of their own.
// Every analysis and pass takes it that other subscripts are other memory: races, fused loops, contracted buffers,
// lanes in step, reads and writes that change places. Of compact tensors and of memory that a kernel allocates it is
// true by construction. Of declared strides it is asked for here, as far as constants decide it, and at every call
// (runtime/arguments.cc). A tensor that is only read may hold an element twice: nobody can tell.
#pragma once

#include "helve/ir/tensor/function.h"

namespace helve {

/// Throws UserError (ParameterStridesOverlap) for the first parameter that the function writes and whose strides give
/// two elements one address in every call in which it has elements.
void refuse_overlapping_strides(const Function& f);

}  // namespace helve
