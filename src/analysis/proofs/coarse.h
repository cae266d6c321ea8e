// A weaker form of a question that isl answers cheaply.
// What is impossible under fewer conditions is impossible under all. So what costs isl most and seldom matters is left
// out first: the quotients of extents, and how values were searched for in memory.
#pragma once

#include <optional>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/expr/expr.h"

namespace helve::proofs {

struct CoarseQuestion {
  std::vector<Expr> conditions;
  std::vector<VarRef> vars;  ///< stand for parts of them
};

/// Parts of the variables `given` alone that are not linear, and values that are chosen by what memory holds, become
/// any value, equal ones the same. Conditions with other products are left out, and so are definitions of names by
/// large values, or of names that nothing mentions. Minima and maxima that `facts` decide are what they decide. Nothing
/// if the conditions have none of these.
std::optional<CoarseQuestion> coarsen(const std::vector<Expr>& conditions, const std::vector<VarRef>& given,
                                      const Facts& facts);

}  // namespace helve::proofs
