// Code that faults wherever it runs, as constants show it.
// A program whose code faults means nothing, so what remains to be compiled never runs such code. Passes that fold
// subscripts and extents, or take away conditions that hold, take it out: it would not verify where no condition is
// left to doubt that it runs, and schedules need not reckon with it.
#pragma once

#include "helve/ir/tensor/function.h"

namespace helve {

/// `e` with a value, 0, in place of every load, and load of a tile, at constants outside of its buffer.
Expr without_faults(const Expr& e);

/// Nothing in place of a store at constants outside of its buffer, and of a tile operation whose constants say that a
/// region is outside or that shapes differ; an empty region begins and ends at constants that verify; a kernel that
/// left copies unfinished in every run waits for them at its end. Other statements are returned as they are. `mesh` may
/// be null.
Stmt without_fault(const Stmt& s, const MeshShape* mesh);

/// The same of a statement, of all in it, and of their expressions.
Stmt without_any_fault(const Stmt& s, const MeshShape* mesh);

}  // namespace helve
