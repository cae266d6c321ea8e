// Subscripts by one variable, and when equal ones mean equal values of it.
// Most pairs of instances are kept apart so, without a set of integers: races, barriers, the fusion of loops and the
// contraction of buffers ask this first.
#pragma once

#include <cstdint>
#include <optional>

#include "helve/arith/interval.h"
#include "helve/ir/expr/expr.h"

namespace helve {

/// A subscript as step * variable + rest: the step is not 0, and the rest does not mention the variable.
struct Stepped {
  int64_t step;
  Expr rest;
};

/// Nothing where the subscript has no such form.
std::optional<Stepped> stepped_by(const Expr& subscript, const Var* var);

/// Do equal subscripts step * x + r and step * y + s mean x == y, where `difference` holds all r - s?
bool forces_equal(int64_t step, const Interval& difference);

}  // namespace helve
