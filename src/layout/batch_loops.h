// The loop behind BatchMap, for the widest vectors of the machine.
// It takes all the time of a batch, and a build runs on machines that differ, so the choice is made when it runs.
#pragma once

#include "helve/layout/apply_many.h"

namespace helve::layout_detail {

/// The bytes that move between memory and caches together.
inline constexpr size_t kCacheLine = 64;

/// out[i] = swizzle(offset + the sum of all terms but the wide ones) at indices[i]; `out` may be `indices`. Returns
/// whether all indices are in [0, size).
using BatchSum = bool (*)(const BatchMap::AxisTerms& terms, const int64_t* indices, size_t count, int64_t size,
                          int64_t* out);

/// Those that this machine can run, the fastest first.
const std::vector<BatchSum>& batch_sums();

}  // namespace helve::layout_detail
