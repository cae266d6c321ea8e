// The function of a mesh for one core.
// It stands ahead of a target's passes: what it makes is a program of its own, with parameters of other extents.
#pragma once

#include "helve/ir/tensor/function.h"

namespace helve {

/// Annotated tensors become the part of one core. UserError NotOfOwnPart for an access that could need the part of
/// another core, a parameter without an annotation that is written, an extent that is cut and not constant.
FunctionRef localize(const FunctionRef& f);

}  // namespace helve
