// Sorting of points.
// Rows are sorted in place where they are not sorted already, which the usual replicas are.
#include "helve/layout/point.h"

#include <numeric>

namespace helve {

void Points::sort() {
  const size_t width = axes_.size();
  auto before = [&](size_t i, size_t j) {
    return std::lexicographical_compare(row(i), row(i) + width, row(j), row(j) + width);
  };
  bool ascending = true;
  for (size_t i = 1; i < size_ && ascending; ++i) ascending = before(i - 1, i);
  if (ascending) return;
  std::vector<size_t> order(size_);
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), before);
  InlineVector<int64_t, 16> sorted;
  sorted.reserve(coordinates_.size());
  size_t kept = 0;
  for (size_t i = 0; i < size_; ++i) {
    if (i > 0 && !before(order[i - 1], order[i])) continue;
    sorted.append(row(order[i]), row(order[i]) + width);
    ++kept;
  }
  coordinates_ = std::move(sorted);
  size_ = kept;
}

}  // namespace helve
