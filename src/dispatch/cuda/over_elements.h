// A loop over all elements of a shape.
// Which thread runs which element is not its matter.
#pragma once

#include <functional>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/stmt.h"

namespace helve {

/// One Parallel loop over `extents`; `body` gets the coordinates and what is known inside.
Stmt over_elements(const std::vector<Expr>& extents, const Facts& facts,
                   const std::function<Stmt(const std::vector<Expr>&, const Facts&)>& body);

}  // namespace helve
