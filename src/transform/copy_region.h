// A copy between two regions of kernel memory, as inserted by passes.
// It does not reach past an end, so the pad is never used.
#pragma once

#include "helve/ir/tensor/stmt.h"

namespace helve {

Stmt copy_region(Region from, Region to, Span span);

}  // namespace helve
