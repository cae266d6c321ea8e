// The class of a layout error follows from its code.
// The decades of the numbers are the classes, so that a row of the table cannot be thrown as the wrong one.
#include "helve/layout/layout_error.h"

namespace helve {

void throw_layout_error(Code code, DiagnosticArgs args, Span span) {
  Diagnostic diagnostic{code, span, std::move(args), {}, {}};
  switch (static_cast<int>(code) / 10) {
    case 50: throw LayoutError(std::move(diagnostic));
    case 51: throw ShapeError(std::move(diagnostic));
    case 52: throw DivisibilityError(std::move(diagnostic));
    case 53: throw InjectivityError(std::move(diagnostic));
    case 54: throw BoundsError(std::move(diagnostic));
    case 55:
    case 56: throw UnsupportedError(std::move(diagnostic));
    default: HELVE_FAIL("a layout error with a code outside 500 to 569");
  }
}

}  // namespace helve
