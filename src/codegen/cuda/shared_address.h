// The address of an element, relative to the buffer's base.
// Shared memory with a layout uses the layout's addresses; the sum before the swizzle, which vectors need, is kept
// separate.
#pragma once

#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/buffer.h"

namespace helve::cuda {

/// `sum`, in elements, and the swizzle that is applied to it.
struct Address {
  Expr sum;
  Swizzle swizzle;

  /// The address of the element.
  Expr swizzled() const { return swizzled(sum); }
  Expr swizzled(const Expr& address) const;
  /// Do `count` contiguous elements that begin at a multiple of `count` stay contiguous?
  bool keeps(int64_t count) const { return swizzle.identity() || count <= (int64_t{1} << swizzle.base); }
};

/// By the layout of shared memory, the strides of a parameter, or row-major. `facts` simplify a layout's digits.
Address address_of(const Buffer& buffer, const std::vector<Expr>& indices, const Facts& facts);

}  // namespace helve::cuda
