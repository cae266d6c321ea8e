// Conditions joined by one `and` or one `or`.
// They have one canonical shape, whose depth grows with the logarithm of their number; text shows it flat.
#pragma once

#include <vector>

#include "helve/ir/expr/build.h"

namespace helve {

/// Operands of the longest chain that is a spine to the left.
inline constexpr size_t kChainSpine = 16;

/// Does a chain of `left` operands joined with one of `right` have the shape of a chain of them all? A chain longer
/// than a spine is two halves, of which the first is the longer.
constexpr bool are_halves(size_t left, size_t right) {
  return left + right > kChainSpine && (left == right || left == right + 1);
}

/// The conditions (at least one) joined by `op`, in order, so that each is evaluated only if those before it do not
/// decide. Equal parts are taken from `like`.
Expr chain(Op op, const std::vector<Expr>& conditions, Span span = {}, const Expr& like = {});

/// As above, of operands of a front end.
Expr chain_operands(Op op, const std::vector<Operand>& conditions, Span span = {});

/// All conditions hold; true without any.
Expr conjunction(const std::vector<Expr>& conditions);

}  // namespace helve
