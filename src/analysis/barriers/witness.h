// Conflicts that are seen without isl.
// Most barriers are needed, and most conflicts that need one are between threads of the first warps, whatever the
// extents are: trying these costs a hundredth of a query.
#pragma once

#include "access_table.h"

namespace helve::barriers {

/// Is a pair of threads found that conflicts: `a` of one touches the element that the later `b` of another one does,
/// where all conditions and ranges of both hold? Both are seen from one loop; with `carried`, `a` is in an earlier
/// iteration of it. False says nothing.
bool found_in_conflict(const Function& f, const BlockAccess& a, const BlockAccess& b, bool carried);

}  // namespace helve::barriers
