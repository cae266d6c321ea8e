// Where the error of a call is reported.
// Arguments have no source location, so their errors are reported where the kernel is called.
#pragma once

#include "helve/support/diagnostic.h"

namespace helve::runtime {

/// Runs `call`; a UserError without a location gets `place`, if that is known.
template <class F>
void report_at(const Span& place, F&& call) {
  try {
    call();
  } catch (const UserError& error) {
    if (error.diagnostic().span.known() || !place.known()) throw;
    Diagnostic located = error.diagnostic();
    located.span = place;
    throw UserError(std::move(located));
  }
}

}  // namespace helve::runtime
