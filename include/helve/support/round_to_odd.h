// Rounding in two steps without double rounding.
// A number that a format cannot represent becomes the one of its two neighbours whose last bit is set. Rounded to odd,
// it is on the same side of every midpoint of a format with at least two bits less, so that rounding it again equals
// rounding the number itself (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace helve {

/// A number rounded to odd. `nearest` is the number rounded in any direction, and `side` tells on which side of it the
/// number lies: below (negative), above (positive), or there (0). Infinities and NaN stay.
template <std::floating_point F>
F round_to_odd(F nearest, int side) {
  using Bits = std::conditional_t<sizeof(F) == 8, uint64_t, uint32_t>;
  static_assert(sizeof(F) == sizeof(Bits));
  if (side == 0 || !std::isfinite(nearest) || (std::bit_cast<Bits>(nearest) & 1) != 0) return nearest;
  constexpr F kFar = std::numeric_limits<F>::infinity();
  return std::nextafter(nearest, side > 0 ? kFar : -kFar);
}

/// In float32.
inline float round_to_odd(double number) {
  const auto nearest = static_cast<float>(number);
  const auto back = static_cast<double>(nearest);
  return round_to_odd(nearest, (number > back) - (number < back));
}

/// In float64.
template <std::integral T>
double round_to_odd(T number) {
  const auto nearest = static_cast<double>(number);
  // The power of two after the largest number of the type, which is not one of its values.
  constexpr double kEnd = 2.0 * static_cast<double>(uint64_t{1} << (std::numeric_limits<T>::digits - 1));
  if (nearest >= kEnd) return round_to_odd(nearest, -1);
  const auto back = static_cast<T>(nearest);
  return round_to_odd(nearest, (number > back) - (number < back));
}

}  // namespace helve
