// Is anything evaluated that was not, and might fail?
// Bounds, conditions and names that read nothing that changes are no statements of a region: they may be evaluated any
// number of times. But a read outside of a tensor, or a division by 0, may be evaluated only where it was.
#pragma once

#include <vector>

#include "helve/schedule/legality.h"

namespace helve::legality {

/// May a statement, itself or below, evaluate what fails?
bool may_fail(const Stmt& region);

/// Unknown where the new region may evaluate what fails and the old one does not.
Legality check_evaluations(const AccessModel& before, const AccessModel& after, const std::vector<Origin>& origins,
                           const ExactEngine& engine);

}  // namespace helve::legality
