// Two accesses at one element: the condition under which they touch it.
// Races and dependences ask the same of boxes in elements, in tiles and in blocks of cores.
#pragma once

#include <vector>

#include "helve/analysis/path_conditions.h"

namespace helve {

struct SameElement {
  std::vector<Expr> element;  ///< subscripts that both touch
  Expr condition;  ///< under which they do
};

/// When do `a` and `b`, of one buffer, touch the same element, where the variables of `b` are renamed? `absolute`:
/// boxes in blocks of cores count from the tensor's begin, not from their block's. Adds the variables that it needs to
/// `query`, and its doubts.
SameElement same_element(PathConditions& query, const Access& a, const Access& b, const Substitution& renamed,
                         bool absolute);

}  // namespace helve
