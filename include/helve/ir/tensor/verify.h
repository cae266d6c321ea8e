// The verifier: the definition of a well-formed function.
// It runs on the user's program and after every pass; errors of a pass are reported with the same codes.
#pragma once

#include "helve/ir/tensor/function.h"

namespace helve {

/// Throws UserError with the first fault of the function: scoping of variables and buffers, index counts, tile loops,
/// shapes and dtypes of tile operations, mesh and grid, collectives.
void verify(const FunctionRef& f);

/// Verifies the shape and dtype rule of one tile operation. `mesh` may be null if none is known; `runs` is false if the
/// operation may never be executed.
void verify_tile_op(const TileOp& op, const MeshShape* mesh, bool runs = true);

/// Does every run of the kernel, as far as constants tell, leave a copy unfinished that it started by T.copy_async?
/// That is an error (UnfinishedCopy).
bool leaves_copies(const Kernel& kernel);

}  // namespace helve
