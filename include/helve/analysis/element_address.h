// The address of an element, relative to its buffer's base, in elements.
// Shared memory with a layout uses the layout's addresses; the sum before the swizzle, which vectors need, is kept
// separate.
#pragma once

#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/buffer.h"

namespace helve {

/// `sum`, in elements, and the swizzle that is applied to it.
struct Address {
  Expr sum;
  Swizzle swizzle;

  /// The address of the element.
  Expr swizzled() const { return swizzled(sum); }
  Expr swizzled(const Expr& address) const;
  /// The same, with what the swizzle leaves alone outside of it, where `facts` tell it apart: the accesses of a thread
  /// that are constant distances apart share what they add these to.
  Expr swizzled(const Facts& facts) const;
  /// The same where a term reaches beyond the bits that may change, too, by quotients and remainders of it: for
  /// accesses to many elements at once. For single elements they are more values to keep than to compute.
  Expr swizzled_by_digits(const Facts& facts) const;
  /// Do `count` contiguous elements that begin at a multiple of `count` stay contiguous?
  bool keeps(int64_t count) const { return swizzle.identity() || (int64_t{1} << swizzle.base) % count == 0; }
};

/// By the layout of shared memory, the strides of a parameter, or row-major. `facts` simplify a layout's digits.
Address address_of(const Buffer& buffer, const std::vector<Expr>& indices, const Facts& facts);

/// By declared strides or row-major, whatever the layout. `first` omits the dimensions before it. The sum is in normal
/// form if all strides are constants.
Expr element_offset(const Buffer& buffer, const std::vector<Expr>& indices, size_t first = 0);

/// The place of an element in its buffer, counted in elements: by declared strides, or row-major.
Expr flat_address(const Buffer& buffer, const std::vector<Expr>& indices);
/// The same in shared memory with a layout: by the layout, before its swizzle.
Expr layout_address(const Buffer& buffer, const std::vector<Expr>& indices);

/// Is `index` a multiple of `unit` in lane 0, where `lane` counts from 0, whatever the values of the other variables?
bool starts_aligned(const Expr& index, const Var* lane, int64_t unit);

}  // namespace helve
