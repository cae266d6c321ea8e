// Loops over vectors that can be shifted.
// The alignment of a vector in memory determines the cost of its store; a loop whose iterations do the same at other
// positions can be shifted until its vectors are aligned to cache lines.
#pragma once

#include <optional>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

/// A nest such as `for c: for v in T.serial(8): for l in T.vectorized(lanes)` that computes each element from its
/// position (c * 8 + v) * lanes + l alone, writes one tensor that it does not read, and carries nothing from one
/// iteration to the next. Its iterations may run in any order.
struct VectorWalk {
  std::vector<VarRef> vars;  ///< c, v: all except the lane
  std::vector<int64_t> extents;  ///< of all vars but the first: 8
  Stmt body;  ///< of the innermost loop over vectors, with all positions shifted by `shift`
  const For* original;  ///< its loop over lanes
  const For* vectors;  ///< the same in `body`
  const Store* store;  ///< to the tensor, of contiguous elements, in `body`
  int64_t lanes;
};

/// `loop` as such a walk, or nothing. `shift` is a variable that does not occur in it.
std::optional<VectorWalk> vector_walk(const For& loop, const VarRef& shift);

}  // namespace helve
