// Whether two strided boxes of memory share a byte.
// Halves of one matrix are interleaved rows in memory: comparing address ranges alone would refuse them.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <vector>

#include "arguments.h"

namespace helve::runtime {

namespace {

/// A summand stride * i with 0 <= i <= limit, stride > 0.
struct Term {
  int64_t stride;
  int64_t limit;
};

int64_t floor_div(int64_t a, int64_t b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0); }

/// Decides by branch and bound whether a sum of terms takes a value in a window.
class SumSearch {
 public:
  explicit SumSearch(std::vector<Term> terms)
      : terms_(std::move(terms)), reach_(terms_.size() + 1), gcd_(terms_.size() + 1) {
    std::ranges::sort(terms_, std::greater<>(), &Term::stride);
    for (size_t i = terms_.size(); i-- > 0;) {
      reach_[i] = reach_[i + 1] + terms_[i].stride * terms_[i].limit;
      gcd_[i] = std::gcd(gcd_[i + 1], terms_[i].stride);
    }
  }

  /// Whether some sum lies in [low, high].
  bool find(int64_t low, int64_t high) { return find(0, low, high); }

 private:
  bool find(size_t i, int64_t low, int64_t high) {
    low = std::max<int64_t>(low, 0);
    high = std::min(high, reach_[i]);
    if (low > high) return false;
    if (low == 0) return true;  // all indices zero
    if (floor_div(high, gcd_[i]) * gcd_[i] < low) return false;
    if (--budget_ < 0) return true;
    const Term& term = terms_[i];
    const int64_t first = std::max<int64_t>(0, floor_div(low - reach_[i + 1] + term.stride - 1, term.stride));
    const int64_t last = std::min(term.limit, floor_div(high, term.stride));
    for (int64_t n = last; n >= first; --n) {
      if (find(i + 1, low - n * term.stride, high - n * term.stride)) return true;
    }
    return false;
  }

  std::vector<Term> terms_;
  std::vector<int64_t> reach_;  ///< largest sum of the terms from i on
  std::vector<int64_t> gcd_;
  int64_t budget_ = 100000;
};

}  // namespace

bool share_memory(const StridedBox& a, const StridedBox& b) {
  // With X = i.s - j.t (bytes) and distance = b.base - a.base, element i of a and element j of b share a byte exactly
  // where distance - a.element < X < distance + b.element. A falling summand is counted from its other end, which
  // shifts X.
  std::vector<Term> terms;
  int64_t shift = 0;  // sum of the least values of all summands
  auto add = [&](std::span<const int64_t> extents, std::span<const int64_t> strides, int64_t sign) {
    for (size_t d = 0; d < extents.size(); ++d) {
      if (extents[d] == 0) return false;
      const int64_t stride = sign * strides[d];
      if (extents[d] == 1 || stride == 0) continue;
      if (stride < 0) shift += stride * (extents[d] - 1);
      terms.push_back({stride < 0 ? -stride : stride, extents[d] - 1});
    }
    return true;
  };
  if (!add(a.extents, a.strides, 1) || !add(b.extents, b.strides, -1)) return false;
  const int64_t distance =
      static_cast<int64_t>(reinterpret_cast<intptr_t>(b.base) - reinterpret_cast<intptr_t>(a.base));
  return SumSearch(std::move(terms)).find(distance - shift - a.element + 1, distance - shift + b.element - 1);
}

}  // namespace helve::runtime
