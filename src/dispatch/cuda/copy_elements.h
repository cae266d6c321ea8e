// A copy as one loop over its elements.
// Every schedule of a copy has elements that it can move only this way.
#pragma once

#include <functional>
#include <vector>

#include "copy_regions.h"

namespace helve::cuda {

/// The elements of the copy, or those whose coordinates satisfy `where`.
Stmt copy_elements(const CopyRegions& copy, const Facts& facts,
                   const std::function<Expr(const std::vector<Expr>& at)>& where = {});

}  // namespace helve::cuda
