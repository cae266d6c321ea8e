// Loops over elements: nests of independent loops, whose iterations are divided among threads.
// Every pass that divides, places or privatizes uses this definition.
#pragma once

#include <optional>
#include <vector>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// A nest of independent loops as one loop; `begins` are added in the body.
struct ElementLoop {
  std::vector<VarRef> vars;
  std::vector<Expr> extents;
  Stmt body;
};

/// The loops of a perfect nest, with bounds that do not depend on each other's variables.
ElementLoop element_loop(const For& loop);

/// An access of the loop's body to the element of its iteration: dimension k of the buffer is indexed by variable [k]
/// of the loop and has its extent, or has extent 1 (-1) and any index. Nothing for other accesses.
std::optional<std::vector<int>> element_dims(const ElementLoop& loop, const Buffer& buffer,
                                             const std::vector<Expr>& indices);

/// Are the iterations of the loop independent, so that threads may share them?
inline bool is_element_loop(const For& loop) {
  return loop.loop == LoopKind::Parallel || loop.loop == LoopKind::Vectorized;
}

/// Does a loop over elements contain another one that is divided among the threads instead of it?
bool is_divided_inside(const For& loop);

}  // namespace helve
