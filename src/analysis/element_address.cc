// The address of an element, relative to its buffer's base.
// A layout's digits are quotients and remainders of the subscripts; facts simplify most of them.
#include "helve/analysis/element_address.h"

#include <algorithm>

#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/layout/address_terms.h"

namespace helve {

Expr Address::swizzled(const Expr& address) const {
  if (swizzle.identity()) return address;
  const auto power = [](int bit) { return int_imm(int64_t{1} << bit); };
  const Expr above = floor_div(address, power(swizzle.base + std::max(swizzle.shift, 0)));
  const Expr bits = floor_mod(above, power(swizzle.bits));
  const int low = swizzle.base + std::max(-swizzle.shift, 0);
  return apply(Op::BitXor, {address, low == 0 ? bits : bits * power(low)});
}

namespace {

/// `address` with what the swizzle leaves alone outside of it; null where `facts` do not tell it apart without digits.
Expr told_apart(const Address& address, const Facts& facts, bool by_digits) {
  const Swizzle& swizzle = address.swizzle;
  const int64_t unit = int64_t{1} << swizzle.base, window = unit << swizzle.bits;
  if (swizzle.identity() || swizzle.shift < swizzle.bits) return {};
  Sum rest, inside;  // multiples of the bits that may change, and what these are among
  const Sum sum = sum_of(address.sum);
  for (const Term& term : sum.terms) (term.coefficient % window == 0 ? rest : inside).terms.push_back(term);
  inside.constant = sum.constant & (window - 1);
  rest.constant = sum.constant - inside.constant;
  Expr from = expr_of(rest), low = expr_of(inside);
  if (!interval_of(inside, facts).within(0, window - 1)) {
    if (!by_digits) return {};
    from = from + simplify(floor_div(low, int_imm(window)), facts) * int_imm(window);
    low = simplify(floor_mod(low, int_imm(window)), facts);
  }
  const Expr above = floor_div(from, int_imm(unit << swizzle.shift));
  const Expr bits = simplify(floor_mod(above, int_imm(int64_t{1} << swizzle.bits)), facts);
  const Expr flipped = apply(Op::BitXor, {simplify(floor_div(low, int_imm(unit)), facts), bits});
  const Expr kept = simplify(floor_mod(low, int_imm(unit)), facts);
  return expr_of(sum_of(from + flipped * int_imm(unit) + kept));
}

}  // namespace

Expr Address::swizzled(const Facts& facts) const {
  const Expr apart = told_apart(*this, facts, false);
  return apart ? apart : swizzled();
}

Expr Address::swizzled_by_digits(const Facts& facts) const {
  const Expr apart = told_apart(*this, facts, true);
  return apart ? apart : swizzled();
}

Address address_of(const Buffer& buffer, const std::vector<Expr>& indices, const Facts& facts) {
  if (!buffer.layout) return {element_offset(buffer, indices), {}};
  return {simplify(layout_address(buffer, indices), facts), buffer.layout->swizzle()};
}

Expr element_offset(const Buffer& buffer, const std::vector<Expr>& indices, size_t first) {
  Expr offset;
  Expr stride = int_imm(1);
  bool constant = true;
  for (size_t d = indices.size(); d-- > first;) {
    const Expr by = buffer.strides.empty() ? stride : buffer.strides[d];
    constant &= int_value(by) != nullptr;
    const int64_t* factor = int_value(by);
    Expr term = factor && *factor == 1 ? indices[d] : indices[d] * by;
    if (const int64_t* index = int_value(indices[d]); index && *index == 0) term = nullptr;
    if (term) offset = offset ? term + offset : term;
    if (buffer.strides.empty() && d > first) stride = simplify(stride * buffer.shape[d]);
  }
  if (!offset) return int_imm(0);
  return constant ? expr_of(sum_of(offset)) : offset;
}

Expr flat_address(const Buffer& buffer, const std::vector<Expr>& indices) {
  Expr address = int_imm(0);
  Expr pitch = int_imm(1);
  for (size_t d = indices.size(); d-- > 0;) {
    const Expr stride = buffer.strides.empty() ? pitch : buffer.strides[d];
    address = address + indices[d] * stride;
    if (buffer.strides.empty()) pitch = pitch * buffer.shape[d];
  }
  return address;
}

Expr layout_address(const Buffer& buffer, const std::vector<Expr>& indices) {
  Expr address = int_imm(0);
  for (const AddressTerm& term : address_terms(*buffer.layout, layout_domain(buffer))) {
    const Expr above = floor_div(indices[term.dim], int_imm(term.divisor));
    const Expr digit = term.outermost ? above : floor_mod(above, int_imm(term.extent));
    address = address + digit * int_imm(term.stride);
  }
  return address;
}

bool starts_aligned(const Expr& index, const Var* lane, int64_t unit) {
  const Sum sum = sum_of(index);
  return sum.constant % unit == 0 && std::all_of(sum.terms.begin(), sum.terms.end(), [&](const Term& term) {
           return term.coefficient % unit == 0 || (term.factors.size() == 1 && term.factors[0].get() == lane);
         });
}

}  // namespace helve
