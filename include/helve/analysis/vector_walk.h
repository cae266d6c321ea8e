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
/// iteration to the next. The positions may be computed in any order, in vectors of any number of lanes up to `lanes`.
struct VectorWalk {
  Expr first;    ///< position
  Expr vectors;  ///< number of them; negative for none
  int64_t lanes;
  VarRef position, lane;  ///< not defined in `body`
  std::vector<Stmt> allocations;  ///< of buffers that a vector has for itself
  Stmt body;                      ///< what computes the element at `position`, in `lane` of a vector
  const Store* store;             ///< to the tensor, of contiguous elements, in `body`
};

/// `loop` as such a walk, or nothing.
std::optional<VectorWalk> vector_walk(const For& loop);

}  // namespace helve
