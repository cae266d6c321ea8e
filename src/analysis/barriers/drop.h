// Removes superfluous barriers, or the fences before barriers.
// A barrier is tried by removing it: conflicts that this creates are searched along the path from it to the root, as
// far as effects change.
#pragma once

#include <functional>
#include <vector>

#include "part.h"
#include "run.h"

namespace helve::barriers {

/// Removes barriers that are `tried`, one after the other in program order, that the remaining ones make superfluous.
/// Returns the conflicts for which inserted ones are kept only because the budget did not suffice.
std::vector<Found> drop_superfluous(Part& kernel, AccessTable& table, ConflictQueries& conflicts,
                                    const std::function<bool(const Part&)>& tried);

}  // namespace helve::barriers
