// The cores among which a collective moves values.
// Cores are numbered row-major over the mesh; a group is every `stride`-th of some of them, so that members are found
// by arithmetic.
#pragma once

#include "helve/ir/tensor/function.h"

namespace helve {

/// A group as one of its cores sees it. Numbers of cores count from the first core of the span that the group was asked
/// for in.
struct CoreGroup {
  int64_t members = 1;
  int64_t stride = 1;  ///< between the numbers of neighbouring members
  Expr first;  ///< the number of member 0
  Expr me;  ///< which member the core is
  Expr place;  ///< which group of its kind in the span it is

  Expr number(const Expr& member) const { return first + member * int_imm(stride); }
};

/// Consecutive cores, as many for each place on the axes before `axis`: all places on `axis` and those after it.
struct CoreSpan {
  size_t axis = 0;
  int64_t cores = 1;
};

/// The least span that holds the group of every collective of the kernel. InternalError without collectives.
CoreSpan span_of_collectives(const Kernel& kernel, const MeshShape& mesh);

/// All cores of the mesh.
CoreSpan whole_span(const MeshShape& mesh);

/// The group of a collective in a span that holds it, for the core with these coordinates, one a mesh axis.
CoreGroup group_of(const TileOp& collective, const MeshShape& mesh, const std::vector<VarRef>& core, CoreSpan span);

/// The mesh axis along which a collective moves values; nothing where that is all of them.
std::optional<size_t> axis_of(const TileOp& collective, const MeshShape& mesh);

}  // namespace helve
