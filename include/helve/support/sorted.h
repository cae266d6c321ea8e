// Are the integers of an array in order?
// The interpreter and the runtime check the same promise of a call.
#pragma once

#include <cstdint>
#include <optional>

namespace helve {

/// The position of the first integer that is less than the one before, of `count` that lie `step` elements of `bytes`
/// bytes apart; nothing if they do not decrease.
std::optional<int64_t> first_decrease(const void* data, int64_t count, int64_t step, int64_t bytes, bool is_signed);

}  // namespace helve
