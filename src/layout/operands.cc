// Checks of operands.
// Shared by tile, direct_sum and the recognisers.
#include "operands.h"

#include "helve/layout/notation.h"
#include "helve/support/text.h"

namespace helve::layout_detail {

void check_ranks(std::string_view operation, const std::vector<int64_t>& left, const std::vector<int64_t>& right) {
  if (left.size() == right.size()) return;
  throw_layout_error(Code::ShapeRank, {{"operation", std::string(operation)},
                                       {"left", "shape " + shape_text(left)},
                                       {"right", "shape " + shape_text(right)}});
}

Swizzle moving_swizzle(const Layout& layout) {
  return layout.swizzle().identity() ? Swizzle{} : layout.canonicalize().swizzle();
}

void refuse_swizzled(std::string_view operation, std::string_view operand, const Layout& layout) {
  if (moving_swizzle(layout).identity()) return;
  throw_layout_error(
      Code::SwizzledOperand,
      {{"operation", std::string(operation)}, {"operand", std::string(operand)}, {"layout", to_string(layout)}});
}

}  // namespace helve::layout_detail
