// Elements of a region.
// Points keep their place, all other dimensions count from the region's begin.
#include "helve/ir/tensor/region.h"

namespace helve {

Expr plus(const Expr& a, const Expr& b) {
  if (const int64_t* v = int_value(a); v && *v == 0) return b;
  if (const int64_t* v = int_value(b); v && *v == 0) return a;
  return a + b;
}

std::vector<Expr> region_indices(const Region& region, const std::vector<Expr>& coords) {
  std::vector<Expr> out;
  size_t next = 0;
  for (const Range& r : region.ranges) out.push_back(r.point ? r.begin : plus(r.begin, coords[next++]));
  return out;
}

}  // namespace helve
