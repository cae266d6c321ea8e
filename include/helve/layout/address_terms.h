// A layout's address as terms.
// Passes turn the place of an element into scalar expressions; they need the digits of each dimension, not the algebra.
#pragma once

#include <cstdint>
#include <vector>

#include "helve/layout/layout.h"

namespace helve {

/// One summand of a coordinate: ((index[dim] // divisor) % extent) * stride along `axis`.
struct AddressTerm {
  size_t dim;
  int64_t divisor;
  int64_t extent;
  int64_t stride;
  Axis axis;
  bool outermost;  ///< the slowest digit of its dimension: inside the domain the `%` changes nothing

  bool operator==(const AddressTerm&) const = default;
};

/// The terms of the shard over `domain`, dimension by dimension, slowest digit first; none of stride 0. The coordinate
/// of an element on an axis is the offset plus the sum of the axis's terms; on `m` the swizzle follows. Throws like
/// Layout::group.
std::vector<AddressTerm> address_terms(const Layout& layout, const std::vector<int64_t>& domain);

}  // namespace helve
