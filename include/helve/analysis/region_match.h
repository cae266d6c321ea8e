// The extents of an operation's regions that must be equal.
// A copy drops dimensions of extent 1, so which dimensions match is not trivial; proofs and lowerings must agree on it.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

/// Two regions with the same number of dimensions that are not points: dimensions known to have extent 1 become points
/// if that makes the numbers equal, otherwise (an extent known only at the call may be 1) all dimensions match by
/// position. Nothing if neither applies.
std::optional<std::pair<Region, Region>> matched_regions(const Region& a, const Region& b);

/// Extents that must be equal whenever the operation runs, in pairs; nothing if only a call determines which dimensions
/// match. The operation belongs to a verified function.
std::optional<std::vector<std::pair<Expr, Expr>>> equal_extents(const TileOp& op, const Function& f);

}  // namespace helve
