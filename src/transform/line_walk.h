// A walk over vectors as loops that store whole lines of the cache around the caches.
// stream_stores decides where; here is how.
#pragma once

#include "helve/analysis/vector_walk.h"

namespace helve {

/// The walk from the first line on, of `line` bytes; what is before it and after the last one is stored through the
/// caches. The walk's vectors are whole lines.
Stmt line_walk(const VectorWalk& walk, int64_t line);

}  // namespace helve
