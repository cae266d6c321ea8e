// Which shared buffers hold values at once.
// Those need bytes of their own, whatever barriers there are.
#pragma once

#include "buffer_set.h"
#include "helve/ir/tensor/stmt.h"

namespace helve::lifetimes {

/// Adds those pairs of buffers of which a statement may write one while the other holds a value that is read later.
void add_live_together(const Kernel& kernel, const std::vector<BufferRef>& buffers, const Numbers& numbers,
                       Interference& interference);

}  // namespace helve::lifetimes
