// A core's part of a collective: it reads the members' values and writes its own destination.
// Where a member's values are is the caller's to say: in the member's memory, or in slots that it has stored to.
#pragma once

#include <functional>

#include "helve/analysis/core_groups.h"

namespace helve {

/// The threads of the block that execute a loop.
struct ThreadLoop {
  VarRef tx;
  int64_t threads = 0;
  Span span;
};

/// A loop of all threads over the places of a box.
Stmt over_box(const ThreadLoop& loop, const std::vector<Expr>& extents,
              const std::function<Stmt(const std::vector<Expr>&)>& body);

/// The element of a core's source with these subscripts: of the core with these coordinates, member so and so of the
/// group. Declarations that it needs are appended to the statements.
using MemberElement = std::function<Expr(const std::vector<Expr>& core, const Expr& member,
                                         const std::vector<Expr>& indices, std::vector<Stmt>& before)>;

/// A buffer for T.peer of this one.
BufferRef on_other_core(const BufferRef& source);

/// The loop for a collective that moves values: T.comm.put changes the destination of one core, all others that of
/// every core. Sums are in the order of the members, so that results equal those of other targets.
Stmt exchange(const TileOp& op, const MeshShape& mesh, const std::vector<VarRef>& core, const ThreadLoop& loop,
              const MemberElement& element);

}  // namespace helve
