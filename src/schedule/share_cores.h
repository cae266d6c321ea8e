// Loops whose iterations the cores of a cluster run, one each, with all that stands around them done by every core.
// bind() takes this way where a loop is not all that a kernel holds.
#pragma once

#include "helve/schedule/primitive.h"

namespace helve {

/// The rewrite of bind(c, to="core", also=[d]).
Rewrite share_cores(const FunctionRef& f, const Arguments& arguments);

}  // namespace helve
