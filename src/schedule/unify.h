// Is a part of a program the body of another function, for some arguments?
// The answer is what the function's parameters and extents stand for. It is found by structure, up to names and the
// form of index expressions; that the two do the same is asked elsewhere (legality.h).
#pragma once

#include <vector>

#include "helve/ir/expr/visit.h"
#include "helve/schedule/primitive.h"
#include "view.h"

namespace helve {

struct Unification {
  Substitution scalars;  ///< for extents and scalar parameters of the function
  Views views;  ///< for its tensor parameters
  LoopValues values;  ///< variables of the program in terms of those of the function
};

/// What makes the statements `pattern` of the function `leaf` those of the program; refused (ScheduleForm) if nothing
/// does. Extents that the statements do not tell reach to the end of the buffers.
Unification unify(const Function& leaf, const std::vector<Stmt>& pattern, const std::vector<Stmt>& program,
                  const Arguments& arguments);

}  // namespace helve
