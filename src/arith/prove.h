// Proof that a sum is not negative.
// Kept apart from rewriting: facts, comparisons, minima and divisions all put their question in this one form.
#pragma once

#include "helve/arith/facts.h"

namespace helve {

/// True only when `sum` >= 0 wherever the facts hold. Bounded search: subtracts multiples of known inequalities (and of
/// those that define minima, quotients and remainders) until the interval decides, at most a fixed number of steps.
bool proves_nonnegative(const Sum& sum, const Facts& facts);

/// `sum` >= 0 with coefficients divided by their common divisor (the constant rounds down: the sum is an integer).
Sum tightened(const Sum& sum);

}  // namespace helve
