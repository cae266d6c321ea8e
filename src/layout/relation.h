// Bounded integer relations: digits whose weighted sum is a given number.
// Injectivity and the inverse of a layout are both this question, asked of one axis at a time.
#pragma once

#include <cstdint>
#include <optional>

#include "integers.h"

namespace helve::layout_detail {

/// A coefficient in [low, high] of `stride`.
struct Term {
  int64_t stride;
  int64_t low;
  int64_t high;
};

using Terms = InlineVector<Term, 8>;
/// One coefficient for each term.
using Solution = InlineVector<int64_t, 8>;

/// Coefficients with sum(coefficient * stride) == target, those near 0 first; none when there are none. Exact; every
/// term's reach fits in 64 bits. Refused through `counter` when the search is too long.
std::optional<Solution> solve_relation(const Terms& terms, int64_t target, StepCounter& counter);

}  // namespace helve::layout_detail
