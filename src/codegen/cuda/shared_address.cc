// The address of an element, relative to the buffer's base.
// A layout's digits are quotients and remainders of the subscripts; facts simplify most of them.
#include "shared_address.h"

#include "helve/analysis/memory_traffic.h"
#include "helve/arith/simplify.h"
#include "helve/codegen/c/c_emitter.h"

namespace helve::cuda {

Expr Address::swizzled(const Expr& address) const {
  if (swizzle.identity()) return address;
  const auto power = [](int bit) { return int_imm(int64_t{1} << bit); };
  const Expr above = floor_div(address, power(swizzle.base + std::max(swizzle.shift, 0)));
  const Expr bits = floor_mod(above, power(swizzle.bits));
  const int low = swizzle.base + std::max(-swizzle.shift, 0);
  return apply(Op::BitXor, {address, low == 0 ? bits : bits * power(low)});
}

Address address_of(const Buffer& buffer, const std::vector<Expr>& indices, const Facts& facts) {
  if (!buffer.layout) return {c::element_offset(buffer, indices), {}};
  return {simplify(layout_address(buffer, indices), facts), buffer.layout->swizzle()};
}

}  // namespace helve::cuda
