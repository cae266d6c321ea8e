// The ends of int64_t, by names that the room's files share.
// The least has no negative, so that whatever negates or takes a magnitude asks for it.
#pragma once

#include <cstdint>
#include <limits>

namespace helve {

inline constexpr int64_t kInt64Min = std::numeric_limits<int64_t>::min();
inline constexpr int64_t kInt64Max = std::numeric_limits<int64_t>::max();

}  // namespace helve
