// Two iterations of a loop at one element: the query whether that can be.
// The second iteration is a copy of the first with every variable renamed that the loop binds.
#pragma once

#include <vector>

#include "iterations.h"

namespace helve::proofs {

struct Overlap {
  Query query;  ///< everything that holds for two different iterations
  Substitution renamed;  ///< variables of the second iteration
  std::vector<Expr> element;  ///< subscripts that both touch
  Expr condition;  ///< under which they do
};

/// Can the accesses of a pair, which are to one buffer, touch the same element?
Overlap overlap_of(const Iterations& of, const Pair& pair);

}  // namespace helve::proofs
