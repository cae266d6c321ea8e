// Different elements have different addresses.
// All analyses and passes assume that different subscripts are different memory: races, loop fusion, buffer
// contraction, vector lanes, reordered reads and writes. This is true by construction for compact tensors and for
// memory that a kernel allocates. Declared strides are checked here, as far as constants decide, and at every call
// (runtime/arguments.cc). A tensor that is only read may have overlapping elements.
#pragma once

#include "helve/ir/tensor/function.h"

namespace helve {

/// Throws UserError (ParameterStridesOverlap) for the first parameter that the function writes and whose strides give
/// two elements one address in every call in which it has elements.
void refuse_overlapping_strides(const Function& f);

}  // namespace helve
