// A loop over all elements of a shape.
// It is independent of the division among threads.
#pragma once

#include <functional>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/stmt.h"

namespace helve {

/// One Parallel loop over `extents`; `body` gets the coordinates and the facts that hold inside.
Stmt over_elements(const std::vector<Expr>& extents, const Facts& facts,
                   const std::function<Stmt(const std::vector<Expr>&, const Facts&)>& body);

}  // namespace helve
