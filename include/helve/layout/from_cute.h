// Between Axe and CuTe layouts.
// CuTe counts coordinates from the left and Axe from the right; here, and nowhere else, digits are reversed.
#pragma once

#include <variant>
#include <vector>

#include "helve/layout/cute/composed.h"
#include "helve/layout/layout.h"

namespace helve {

/// The layout over the sizes of the top modes that sends each coordinate to the same address on `m`.
Layout from_cute(const cute::Layout& layout);
/// The same with a swizzle and the offset before it. Throws UnsupportedError for other stages than one swizzle.
Layout from_cute(const cute::ComposedLayout& layout);

/// The CuTe layout with one mode for each dimension of `shape`, equal at every coordinate; a ComposedLayout when
/// `layout` is swizzled. Throws UnsupportedError for replicas, for axes other than `m`, and for an offset without a
/// swizzle; and like Layout::group.
std::variant<cute::Layout, cute::ComposedLayout> to_cute(const Layout& layout, const std::vector<int64_t>& shape);

}  // namespace helve
