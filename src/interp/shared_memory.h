// Shadows of arguments that may share memory.
// What two names do to one piece of memory is remembered once, so that a conflict between them is seen.
#pragma once

#include <vector>

#include "helve/ir/tensor/function.h"
#include "storage.h"

namespace helve::interp {

/// Watches the instances that are declared to share memory: those whose memory overlaps get one shadow.
void watch_shared(const std::vector<MayAlias>& declared, const std::vector<Instance*>& instances, Clock& clock);

}  // namespace helve::interp
