// Where an element of a buffer is, counted from the buffer's base.
// Block memory with a layout has the layout's addresses; what vectors need, the sum before a swizzle, is kept apart.
#pragma once

#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/buffer.h"

namespace helve::cuda {

/// `sum`, in elements, and the swizzle that it goes through.
struct Address {
  Expr sum;
  Swizzle swizzle;

  /// The address of the element.
  Expr swizzled() const { return swizzled(sum); }
  Expr swizzled(const Expr& address) const;
  /// Do `count` elements side by side from a multiple of `count` on stay so?
  bool keeps(int64_t count) const { return swizzle.identity() || count <= (int64_t{1} << swizzle.base); }
};

/// By the layout of block memory, the strides of a parameter, or row-major. `facts` simplify a layout's digits.
Address address_of(const Buffer& buffer, const std::vector<Expr>& indices, const Facts& facts);

}  // namespace helve::cuda
