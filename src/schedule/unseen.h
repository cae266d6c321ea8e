// Do stores that a step adds stay unseen?
// An operation on a whole block computes elements beyond those that its nest did; that changes no result if nobody
// reads them.
#pragma once

#include "helve/schedule/legality.h"
#include "helve/schedule/rewrite.h"

namespace helve {

/// Proved if nothing but updates of the same element reads what the stores write, and if what they read is inside of
/// its buffer and was written before.
Legality check_unseen(const Unseen& unseen);

}  // namespace helve
