// Bounds of sets as expressions.
// What isl decided about a set goes back into a program: extents of buffers, bounds of loops.
#pragma once

#include <optional>

#include "helve/arith/relation.h"

namespace helve {

/// The least value of `var`, an entry of the tuple, over the points of the set with the same parameters and earlier
/// entries of the tuple: an index expression in these, with at most `limit` operators. Where there is no such point the
/// expression has any value; where there is one, it is verified to be attained and to be exceeded by none. A variable
/// of a data type represents its value as an integer. For the bound of an expression, the tuple has an entry that
/// equals it; for the bound in parameters only, the set is projected to the entry.
///
/// Nothing if there is no such form, if the set is empty, inexact or without bound (a set that is quantified must be
/// bounded on both sides), or over the budget. A variable is named once by the tuple and the parameters together.
std::optional<Expr> least_value(const IntegerSet& set, const VarRef& var, int limit);
/// The greatest value, likewise.
std::optional<Expr> greatest_value(const IntegerSet& set, const VarRef& var, int limit);

}  // namespace helve
