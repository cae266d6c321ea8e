// Whether an index is known to be a multiple of a number.
// An instruction that moves several elements at once needs addresses that are multiples of their number.
#pragma once

#include "helve/arith/simplify.h"

namespace helve {

/// Proved under `facts`; false where it is not known.
inline bool is_multiple(const Expr& e, int64_t of, const Facts& facts) {
  return of == 1 || residue_of(simplify(e, facts), facts).remainder_by(of) == 0;
}

}  // namespace helve
