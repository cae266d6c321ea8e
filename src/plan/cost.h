// What a step of a redistribution costs.
// The search estimates with it, and volumes are counted by it.
#pragma once

#include "helve/plan/collective.h"

namespace helve {

/// The number of members of a group over the axes.
int64_t members_of(const Transfer& transfer, const std::vector<size_t>& axes);

/// The elements that a device receives from others by a collective of this form.
int64_t elements_received(const CollectiveStep& step, const std::vector<int64_t>& device);

/// Messages, one after the other, in groups of so many members, of which each has so many partners in the exchange.
int64_t rounds(CollectiveForm form, int64_t members, int64_t partners);

}  // namespace helve
