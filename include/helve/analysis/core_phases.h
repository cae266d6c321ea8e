// The plain loops that a kernel of cores means which collectives order.
// Schedules give the iterations of loops to cores, and prove that the result means these loops; how a target moves
// values between cores is its own business (transform).
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

/// What a buffer of every core is as one buffer: `all` has a further dimension `dim` that counts cores.
struct CoreMemory {
  BufferRef all;
  size_t dim = 0;
};
using CoreMemories = std::unordered_map<const Buffer*, CoreMemory>;

/// A definition of a kernel by phases between its collectives: a phase is a loop over the cores of a group, whose
/// iterations have no order. What cores keep from one phase to another is memory of all of them.
struct CorePhases {
  /// A statement of a phase, or below one, and what stands for it.
  struct Member {
    const StmtNode *was, *now;
    VarRef core;  ///< of the loop over cores around `now`
  };
  /// The stores that a collective means: `fill` of each element of all results with the identity of the operator, and
  /// `update` with that of each core, in the order of cores.
  struct Combined {
    const StmtNode *was, *fill, *update;
    std::vector<VarRef> fill_at, update_at;  ///< the coordinates of an element, dimensions of one element left out
    VarRef member;  ///< of the loop over the cores whose elements `update` combines
  };

  Stmt kernel;  ///< without the axis, and without collectives
  std::vector<Member> members;
  std::vector<Combined> combined;
  CoreMemories memories;  ///< of all that lives between phases
};

/// Of a kernel of a mesh whose collectives are all_reduce over the last axis, and stand below loops and branches that
/// are known without memory. `memories` chooses some buffers; others are made. Nothing for others: `reason` says why.
std::optional<CorePhases> core_phases(const Kernel& kernel, const MeshShape& mesh, CoreMemories memories,
                                      std::string& reason);

}  // namespace helve
