// The sizes of the groups of threads that NVIDIA GPUs run together.
// They are the same on all architectures, and the units in which the thread axes of layouts count.
#pragma once

#include <cstdint>

namespace helve {

inline constexpr int64_t kWarp = 32;        ///< values of laneid
inline constexpr int64_t kWarpgroup = 128;  ///< values of tid_in_wg

}  // namespace helve
