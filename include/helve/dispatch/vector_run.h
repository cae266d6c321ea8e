// A run of positions as vectors.
// Reductions and elementwise loops cut a run the same way, so that neighbouring loops over equal extents can be merged.
#pragma once

#include <functional>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/stmt.h"

namespace helve {

/// How many lanes the widest vector of a run over `extent` has: several registers side by side where the run is long
/// enough, so that operations of one do not wait for each other; a power of two, 1 where `extent` is at most 1. `lanes`
/// fill one register.
int64_t widest_lanes(const Expr& extent, int64_t lanes, const Facts& facts);

/// Positions [0, extent) in order, none for a negative extent: vectors of widest_lanes, then narrower ones, then single
/// positions. `body` gets the lane and the position (a multiple of the vector's width, plus the lane).
Stmt vector_run(const Expr& extent, int64_t lanes, const Facts& facts,
                const std::function<Stmt(const Expr& lane, const Expr& position)>& body);

}  // namespace helve
