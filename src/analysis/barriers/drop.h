// Barriers that the others make superfluous.
// A barrier is tried by taking it out: what then meets is found on the way up from it, where its effect still changes
// something, and the first neighbour that ends what is pending ends the way too.
#pragma once

#include <vector>

#include "part.h"
#include "run.h"

namespace helve::barriers {

/// Takes barriers out, one after the other in program order, that the remaining ones make superfluous. Gives the
/// inserted ones that stand only because the budget did not suffice, by what they order.
std::vector<Found> drop_superfluous(Part& kernel, AccessTable& table, Questions& questions);

}  // namespace helve::barriers
