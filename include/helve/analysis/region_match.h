// Which extents of an operation's regions must be equal.
// A copy drops dimensions of extent 1, so what matches what is a question of its own; proofs and lowerings must answer
// it alike.
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

/// Two regions of as many dimensions that are no points: dimensions known to have extent 1 are points where that makes
/// the numbers equal, otherwise (an extent known at the call only may be 1) all dimensions match by position. Nothing
/// when neither does.
std::optional<std::pair<Region, Region>> matched_regions(const Region& a, const Region& b);

/// Extents that must be equal wherever the operation runs, in pairs; nothing when only a call decides what matches
/// what. The operation is one of a verified function's.
std::optional<std::vector<std::pair<Expr, Expr>>> equal_extents(const TileOp& op, const Function& f);

}  // namespace helve
