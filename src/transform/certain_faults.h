// Code that faults whenever it runs, as constants show.
// The behaviour of such code is undefined, so compiled programs never run it. Passes that fold subscripts and extents,
// or remove conditions that hold, also remove it: without its condition it would not verify, and schedules need not
// handle it.
#pragma once

#include "helve/ir/tensor/function.h"

namespace helve {

/// `e` with the value 0 in place of each load, and each load of a tile, at constants outside of its buffer.
Expr without_faults(const Expr& e);

/// Removes a store at constants outside of its buffer, and a tile operation with constants by which a region is outside
/// or shapes differ. An empty region gets constants that verify. A kernel that leaves copies unfinished in every run
/// waits for them at its end. Other statements are returned unchanged. `mesh` may be null.
Stmt without_fault(const Stmt& s, const MeshShape* mesh);

/// The same for a statement, all statements in it, and their expressions.
Stmt without_any_fault(const Stmt& s, const MeshShape* mesh);

}  // namespace helve
