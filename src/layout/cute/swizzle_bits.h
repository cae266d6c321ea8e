// Which bits a swizzle reads and writes.
// The sign of the shift says which of the two lies lower; here, and nowhere else, it is asked.
#pragma once

#include <algorithm>

#include "helve/layout/layout.h"

namespace helve::cute {

/// The lowest bit that is read.
inline int read_base(const Swizzle& swizzle) { return swizzle.base + std::max(swizzle.shift, 0); }
/// The lowest bit that is written.
inline int written_base(const Swizzle& swizzle) { return swizzle.base - std::min(swizzle.shift, 0); }

}  // namespace helve::cute
