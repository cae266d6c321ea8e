// A run of positions as vectors.
// Reductions and elementwise loops divide a run in the same way, so that neighbouring loops over equal extents can be
// fused.
#pragma once

#include <functional>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/stmt.h"

namespace helve {

/// The lanes of the widest vector of a run over `extent`: several registers if the run is long enough, so that their
/// operations are independent; a power of two, 1 if `extent` is at most 1. `lanes` fill one register.
int64_t widest_lanes(const Expr& extent, int64_t lanes, const Facts& facts);

/// Positions [0, extent) in order, none for a negative extent: vectors of widest_lanes, then narrower ones, then
/// scalars. `body` gets the lane and the position (a multiple of the vector's width, plus the lane).
Stmt vector_run(const Expr& extent, int64_t lanes, const Facts& facts,
                const std::function<Stmt(const Expr& lane, const Expr& position)>& body);

}  // namespace helve
