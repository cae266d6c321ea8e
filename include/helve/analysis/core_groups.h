// The cores between which a collective moves values.
// Cores are numbered row-major over the mesh, and members of a group row-major over the axes along which it moves
// values, so that members are found by arithmetic.
#pragma once

#include "helve/ir/tensor/function.h"

namespace helve {

/// A group from the view of one of its cores.
struct CoreGroup {
  int64_t members = 1;
  Expr me;  ///< the core's member number
  Expr place;  ///< the group's number among those of its kind in the given span
};

/// Consecutive cores, one span for each position on the axes before `axis`: all positions on that axis and those after.
struct CoreSpan {
  size_t axis = 0;
  int64_t cores = 1;
};

/// The smallest span that contains the group of every collective of the kernel. InternalError without collectives.
CoreSpan span_of_collectives(const Kernel& kernel, const MeshShape& mesh);

/// How the cores of a kernel synchronize: as blocks of one cluster, which read each other's shared memory, or, where a
/// group spans more of them than a cluster has, by a cooperative launch of all cores, which share global memory alone.
struct CoreSync {
  CoreSpan span;  ///< of a cluster, else the whole mesh
  bool cluster = false;
};
/// The one place where this is decided, for a kernel with collectives. `cluster_blocks`: Machine's.
CoreSync core_sync(const Kernel& kernel, const MeshShape& mesh, int64_t cluster_blocks);

/// The number of the core with these coordinates, one per mesh axis, in a span that begins at `axis`.
Expr core_number(const std::vector<Expr>& core, const MeshShape& mesh, size_t axis = 0);

/// All cores of the mesh.
CoreSpan whole_span(const MeshShape& mesh);

/// The group of a collective in a span that contains it, for the core with these coordinates, one per mesh axis.
CoreGroup group_of(const TileOp& collective, const MeshShape& mesh, const std::vector<VarRef>& core, CoreSpan span);

/// The mesh axes along which a collective moves values, bit a for axis a.
uint64_t axes_of(const TileOp& collective, const MeshShape& mesh);

/// The coordinates of a member of the group to which the core with these coordinates belongs.
std::vector<Expr> member_coordinates(uint64_t axes, const MeshShape& mesh, const std::vector<VarRef>& core,
                                     const Expr& member);

}  // namespace helve
