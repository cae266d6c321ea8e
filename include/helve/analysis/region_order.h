// Program order of instances in a region, and what holds around it.
// Dependences, the checker of schedules and its parts ask for it in their own terms: which loops count, and what
// "before" or "apart" means; the cases are put together here.
#pragma once

#include <functional>
#include <vector>

#include "helve/analysis/path_conditions.h"
#include "helve/analysis/region_statements.h"

namespace helve {

/// A union of conjunctions: a case for each loop that may decide.
using OrderCases = std::vector<std::vector<Expr>>;

/// A case for each variable of the loops that two statements share: they `agree` on those in front of it, and of this
/// one, in loop number l, is true what `apart` says. No case where it says nothing (null). With `together`, also the
/// one in which they agree on all.
OrderCases order_cases(const RegionStatement& first, const RegionStatement& second,
                       const std::function<Expr(const VarRef&)>& agree,
                       const std::function<Expr(size_t, const VarRef&)>& apart, bool together);

/// Is one of the cases true?
Expr any_of(const OrderCases& cases);

/// The number of the region's loops around the allocation of a buffer; in each of their iterations it is other memory.
size_t loops_around(const AccessModel& model, const Buffer& buffer);

/// What calls meet, and what the loops, branches and names around the region say.
PathConditions conditions_around(const AccessModel& model);

}  // namespace helve
