// Stores that compute an element's new value from its old one.
// Iterations that make them depend on each other, but could be a reduction or atomic instead.
#pragma once

#include <string>

#include "helve/analysis/access.h"

namespace helve::proofs {

/// The store of the access, if it is such a one, as in a reduction by hand; null if not, or if it is atomic.
const Store* updated_by(const Access& access);

/// The equivalent atomic operation, "T.atomic_add(S[0], ...)"; empty if there is none.
std::string atomic_text(const Store& update);

}  // namespace helve::proofs
