// The number of a statement in a region.
// Origins name the statements of both sides of a rewrite by it.
#pragma once

#include <optional>

#include "helve/ir/tensor/visit.h"

namespace helve::testing {

/// In the order of `walk`, where the statement stands first.
inline size_t visit_of(const Stmt& region, const StmtNode* stmt) {
  size_t visit = 0;
  std::optional<size_t> found;
  walk(region, [&](const Stmt& s) {
    if (s.get() == stmt && !found) found = visit;
    ++visit;
  });
  return found.value();
}

}  // namespace helve::testing
