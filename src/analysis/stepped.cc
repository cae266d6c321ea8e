// Subscripts by one variable.
// If step * (x - y) lies within less than a step of 0, x and y are equal.
#include "helve/analysis/stepped.h"

#include <algorithm>
#include <cstdlib>

#include "helve/arith/sum.h"

namespace helve {

std::optional<Stepped> stepped_by(const Expr& subscript, const Var* var) {
  Sum sum = sum_of(subscript);
  const std::optional<int64_t> step = coefficient_of(sum, var);
  if (!step || *step == 0) return std::nullopt;
  std::erase_if(sum.terms, [&](const Term& term) { return term.factors.size() == 1 && term.factors[0].get() == var; });
  return Stepped{*step, expr_of(sum)};
}

bool forces_equal(int64_t step, const Interval& difference) {
  if (step == INT64_MIN) return false;
  return difference.within(1 - std::abs(step), std::abs(step) - 1);
}

}  // namespace helve
