// A byte of int4 converted by a loop over its halves.
// Targets differ in the kind of the loop.
#pragma once

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// The loop of two iterations that an operation which converts the int4 in a byte stands for.
Stmt unpacked_halves(const TileOp& op, LoopKind kind);

}  // namespace helve
