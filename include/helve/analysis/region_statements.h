// The statements of a region that run as a whole, and their instances.
// What has instances is decided once: for dependences, and for a rewrite's old region as for its new one.
#pragma once

#include <vector>

#include "helve/analysis/access.h"

namespace helve {

/// A statement of a region that runs as a whole: a store, a tile operation, a while loop or a loop over threads with
/// all that it holds. The condition of an `if`, the bounds of a loop and the value of a name count where they read what
/// the region writes. An instance of it is a value of each loop variable around it inside the region.
struct RegionStatement {
  const StmtNode* stmt = nullptr;
  size_t visit = 0;  ///< in the region: the region itself is 0, a statement comes before its parts (`walk`'s order)
  Path path;  ///< from the function's body to it
  std::vector<StepRef> loops;  ///< around it inside the region, outermost first
  std::vector<VarRef> vars;  ///< of the loops
  size_t first = 0, last = 0;  ///< its accesses, a part of AccessModel::accesses
  bool pure = false;  ///< changes nothing: running it twice, or not, makes no difference
  /// Is its order to all others observable, or to others that start copies, beyond what it accesses?
  bool orders_all = false, starts_copy = false;
};

/// The statements of a region's model in program order.
std::vector<RegionStatement> region_statements(const AccessModel& model);

/// The number of loops of which two statements of one region share the iterations.
size_t common_loops(const RegionStatement& a, const RegionStatement& b);

}  // namespace helve
