// A layout's address as terms.
// Grouping a shard by the domain's extents gives every iter the dimension whose digit it reads.
#include "helve/layout/address_terms.h"

namespace helve {

std::vector<AddressTerm> address_terms(const Layout& layout, const std::vector<int64_t>& domain) {
  GroupedLayout grouped = layout.group(domain);
  std::vector<AddressTerm> terms;
  for (size_t d = 0; d < grouped.rank(); ++d) {
    int64_t divisor = domain[d];
    for (const Iter& iter : grouped.block(d)) {
      bool outermost = divisor == domain[d];
      divisor /= iter.extent;
      if (iter.stride != 0) terms.push_back({d, divisor, iter.extent, iter.stride, iter.axis, outermost});
    }
  }
  return terms;
}

}  // namespace helve
