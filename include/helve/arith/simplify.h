// Simplification of expressions and proofs of conditions.
// Every room asks here, so that one normal form and one set of rules decide what is equal, in bounds or dead.
#pragma once

#include <optional>

#include "helve/arith/facts.h"
#include "helve/ir/expr/expr.h"

namespace helve {

/// The normal form of `e` where `facts` hold: the same value for every assignment on which `e` has one (a fault, such
/// as a division by zero, may disappear but never appear). Idempotent; returns `e` itself when it is in normal form.
///
/// `index`: the sums of sum.h. `(sum) // c` and `(sum) % c` by a constant: c > 1, |coefficients| < c, constant in [0,
/// c), no common divisor with c, no part that the facts place within one multiple of a divisor, no term with a known
/// remainder by c (one that stands alone under // excepted). Shifts and masks are `//`, `*`, `%`. Comparisons: `p < n +
/// k`, `==`, `!=` with only positive coefficients on both sides, no common divisor, the constant on the right (on the
/// left where p would be empty). `min`/`max`: no operand that another one is proved to decide, in `compare_structure`
/// order, constants last. `not` only on atoms. `and`, `or`: one chain() of operands in their order, each simplified
/// under what those before it say, as the branches of `if_then_else` are under their condition. Data integers:
/// constants and rules that hold modulo 2^n. Floats: only their index, integer and bool parts.
Expr simplify(const Expr& e, const Facts& facts = {});

/// True only when `condition` (bool) holds wherever the facts do; false says nothing.
bool can_prove(const Expr& condition, const Facts& facts = {});

/// The value of an integer or bool expression that is constant for every assignment; empty if it is not found to be, or
/// does not fit (uint64 above 2^63 - 1).
std::optional<int64_t> constant_value(const Expr& e);

}  // namespace helve
