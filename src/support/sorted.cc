// The search for a decrease.
// Strides are in elements and may be negative or 0.
#include "helve/support/sorted.h"

#include "helve/support/diagnostic.h"

namespace helve {

namespace {

template <class Int>
std::optional<int64_t> decrease(const void* data, int64_t count, int64_t step) {
  const Int* at = static_cast<const Int*>(data);
  for (int64_t i = 1; i < count; ++i, at += step) {
    if (at[step] < at[0]) return i;
  }
  return std::nullopt;
}

}  // namespace

std::optional<int64_t> first_decrease(const void* data, int64_t count, int64_t step, int64_t bytes, bool is_signed) {
  switch (bytes) {
    case 1: return is_signed ? decrease<int8_t>(data, count, step) : decrease<uint8_t>(data, count, step);
    case 2: return is_signed ? decrease<int16_t>(data, count, step) : decrease<uint16_t>(data, count, step);
    case 4: return is_signed ? decrease<int32_t>(data, count, step) : decrease<uint32_t>(data, count, step);
    case 8: return is_signed ? decrease<int64_t>(data, count, step) : decrease<uint64_t>(data, count, step);
    default: HELVE_FAIL("integers of another width");
  }
}

}  // namespace helve
