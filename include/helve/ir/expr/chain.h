// Conditions joined by one `and` or one `or`, however many.
// One shape for them, known to whoever builds and to whoever prints, keeps an expression shallow that its text shows
// flat: its depth grows with the logarithm of their number.
#pragma once

#include <vector>

#include "helve/ir/expr/build.h"

namespace helve {

/// Operands of the longest chain that is a spine to the left.
inline constexpr size_t kChainSpine = 16;

/// Does a chain that is one of `left` operands and one of `right` have the shape of a chain of them all? More operands
/// than a spine has are two halves, of which the first is the longer.
constexpr bool are_halves(size_t left, size_t right) {
  return left + right > kChainSpine && (left == right || left == right + 1);
}

/// The conditions (one at least) joined by `op`, in their order, so that each is evaluated where those before it do not
/// decide. Parts of `like` stand for what is equal to them.
Expr chain(Op op, const std::vector<Expr>& conditions, Span span = {}, const Expr& like = {});

/// As above, of operands of a front end.
Expr chain_operands(Op op, const std::vector<Operand>& conditions, Span span = {});

/// All conditions hold; true without any.
Expr conjunction(const std::vector<Expr>& conditions);

}  // namespace helve
