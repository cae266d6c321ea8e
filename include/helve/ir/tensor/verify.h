// The verifier: what a well-formed function is.
// It runs on what users write and after every pass; user faults carry codes, faults of a pass show the same codes to
// its author.
#pragma once

#include "helve/ir/tensor/function.h"

namespace helve {

/// Throws UserError with the first fault of the function: scoping of variables and buffers, index counts, tile loops,
/// shapes and dtypes of tile operations, mesh and grid, collectives.
void verify(const FunctionRef& f);

/// The shape and dtype rule of one tile operation. `mesh` may be null where none is known; `runs` is false where it may
/// be that nothing reaches the operation.
void verify_tile_op(const TileOp& op, const MeshShape* mesh, bool runs = true);

/// Does every run of the kernel leave a copy unfinished that it began by T.copy_async, as far as constants tell? That
/// is a fault (UnfinishedCopy).
bool leaves_copies(const Kernel& kernel);

}  // namespace helve
