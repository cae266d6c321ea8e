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

std::vector<Expr> region_begin(const Region& region) {
  std::vector<Expr> out;
  for (const Range& r : region.ranges) out.push_back(r.begin);
  return out;
}

std::vector<Expr> unravel(const Expr& number, const std::vector<Expr>& extents) {
  std::vector<Expr> out(extents.size());
  Expr rest = number;
  for (size_t d = extents.size(); d-- > 0;) {
    out[d] = d == 0 ? rest : floor_mod(rest, extents[d]);
    if (d > 0) rest = floor_div(rest, extents[d]);
  }
  return out;
}

}  // namespace helve
