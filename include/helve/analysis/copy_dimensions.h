// The dimensions of a copied region, and the distances of its elements.
// Dividing a copy into instructions needs to know which dimensions are contiguous.
#pragma once

#include <vector>

#include "helve/arith/simplify.h"
#include "helve/ir/tensor/buffer.h"

namespace helve {

/// The dimensions that are not points.
inline std::vector<size_t> open_dimensions(const Region& region) {
  std::vector<size_t> out;
  for (size_t d = 0; d < region.ranges.size(); ++d) {
    if (!region.ranges[d].point) out.push_back(d);
  }
  return out;
}

/// The distance of consecutive indices of each dimension, in elements.
inline std::vector<Expr> strides_of(const Buffer& buffer) {
  if (!buffer.strides.empty()) return buffer.strides;
  std::vector<Expr> out(buffer.rank(), int_imm(1));
  for (size_t d = buffer.rank(); d-- > 1;) out[d - 1] = simplify(out[d] * buffer.shape[d]);
  return out;
}

}  // namespace helve
