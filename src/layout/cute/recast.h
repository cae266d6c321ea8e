// A change of the width of elements as two changes of units.
// Layouts, swizzles and composed layouts change their units differently, but divide widths alike.
#pragma once

#include <algorithm>
#include <numeric>

#include "helve/layout/layout_error.h"

namespace helve::cute {

/// `map` in units of new_bits instead of old_bits: up and down by what their greatest common divisor leaves of them.
template <class Map>
Map recast_units(const Map& map, int64_t old_bits, int64_t new_bits) {
  if (old_bits < 1 || new_bits < 1) {
    throw_layout_error(Code::BelowOne, {{"operation", "recast"}, {"value", std::min(old_bits, new_bits)}});
  }
  const int64_t common = std::gcd(old_bits, new_bits);
  Map result = map;
  if (new_bits != common) result = upcast(result, new_bits / common);
  if (old_bits != common) result = downcast(result, old_bits / common);
  return result;
}

}  // namespace helve::cute
