// What lies between the offsets of a layout.
// Complement, division and product ask for it up to a bound or without end; only division needs all of it to be filled.
#pragma once

#include "flat.h"

namespace helve::cute {

/// The modes of copies of a layout that do not overlap: below `end` the modes of the gaps, from there on copies of the
/// whole.
struct Gaps {
  Modes modes;
  int64_t end = 1;
  bool filled = true;  ///< whether the copies reach every offset below the end

  /// The complement, coalesced, for a codomain of `cosize_hi`.
  Layout up_to(int64_t cosize_hi) const;
  /// The complement as a function of all indices; the last mode has no end.
  Modes endless() const;
};

/// Throws like `complement`.
Gaps find_gaps(const char* operation, const Layout& layout);

}  // namespace helve::cute
