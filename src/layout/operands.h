// What the operands of a product, a sum and their recognisers have in common.
// The same fault of an operand is told in the same words by every operation.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "helve/layout/layout.h"

namespace helve::layout_detail {

/// Throws ShapeError unless both shapes have the same rank.
void check_ranks(std::string_view operation, const std::vector<int64_t>& left, const std::vector<int64_t>& right);

/// The swizzle of a layout, or none where it moves nothing: equal maps are operands alike.
Swizzle moving_swizzle(const Layout& layout);

/// Throws UnsupportedError when `layout`, the `operand` of the operation, has a swizzle that moves anything.
void refuse_swizzled(std::string_view operation, std::string_view operand, const Layout& layout);

}  // namespace helve::layout_detail
