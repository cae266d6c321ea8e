// Which elements of strided boxes meet.
// Halves of one matrix are interleaved rows in memory, and windows of a row share it: comparing address ranges alone
// would refuse the ones and accept the others. Both are the question whether a sum of bounded multiples takes a value.
#include "helve/support/strided_box.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "helve/support/inline_vector.h"
#include "helve/support/text.h"

namespace helve {

namespace {

using Wide = __int128;  // a reach of one box fits 64 bits, sums and differences of several need not

/// A summand stride * n with 0 <= n <= limit, stride > 0.
struct Term {
  Wide stride;
  Wide limit;
  size_t place = 0;  ///< of the caller
};

Wide floor_div(Wide a, Wide b) { return a / b - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0); }

Wide gcd(Wide a, Wide b) {
  while (b != 0) a = std::exchange(b, a % b);
  return a;
}

/// Decides by branch and bound whether a sum of terms takes a value in a window.
class SumSearch {
 public:
  enum Answer { Never, Takes, Open };

  explicit SumSearch(std::vector<Term> terms)
      : terms_(std::move(terms)), reach_(terms_.size() + 1), gcd_(terms_.size() + 1), counts_(terms_.size()) {
    std::ranges::sort(terms_, std::greater<>(), &Term::stride);
    for (size_t i = terms_.size(); i-- > 0;) {
      reach_[i] = reach_[i + 1] + terms_[i].stride * terms_[i].limit;
      gcd_[i] = gcd(gcd_[i + 1], terms_[i].stride);
    }
  }

  /// Whether some sum lies in [low, high].
  Answer find(Wide low, Wide high) {
    if (find(0, low, high)) return budget_ < 0 ? Open : Takes;
    return Never;
  }

  const std::vector<Term>& terms() const { return terms_; }
  /// How often each term is taken, after Takes.
  const std::vector<Wide>& counts() const { return counts_; }

 private:
  bool find(size_t i, Wide low, Wide high) {
    low = std::max<Wide>(low, 0);
    high = std::min(high, reach_[i]);
    if (low > high) return false;
    if (low == 0) {
      std::fill(counts_.begin() + static_cast<std::ptrdiff_t>(i), counts_.end(), 0);
      return true;
    }
    if (floor_div(high, gcd_[i]) * gcd_[i] < low) return false;
    const Term& term = terms_[i];
    const Wide first = std::max<Wide>(0, floor_div(low - reach_[i + 1] + term.stride - 1, term.stride));
    const Wide last = std::min(term.limit, floor_div(high, term.stride));
    for (Wide n = last; n >= first; --n) {
      if (--budget_ < 0) return true;
      counts_[i] = n;
      if (find(i + 1, low - n * term.stride, high - n * term.stride)) return true;
    }
    return false;
  }

  std::vector<Term> terms_;
  std::vector<Wide> reach_;  ///< largest sum of the terms from i on
  std::vector<Wide> gcd_;
  std::vector<Wide> counts_;
  int64_t budget_ = 100000;
};

Wide size_of(int64_t stride) { return stride < 0 ? -Wide{stride} : Wide{stride}; }

/// The dimensions in which elements differ, the largest stride first.
InlineVector<size_t, 8> by_stride(std::span<const int64_t> extents, std::span<const int64_t> strides) {
  InlineVector<size_t, 8> out;
  for (size_t d = 0; d < extents.size(); ++d) {
    if (extents[d] > 1) out.push_back(d);
  }
  std::sort(out.begin(), out.end(), [&](size_t a, size_t b) { return size_of(strides[a]) > size_of(strides[b]); });
  return out;
}

bool is_empty(std::span<const int64_t> extents) { return std::ranges::find(extents, 0) != extents.end(); }

}  // namespace

bool share_memory(const StridedBox& a, const StridedBox& b) {
  // With X = i.s - j.t (bytes) and distance = b.base - a.base, element i of a and element j of b share a byte exactly
  // where distance - a.element < X < distance + b.element. A falling summand is counted from its other end, which
  // shifts X.
  std::vector<Term> terms;
  Wide shift = 0;  // sum of the least values of all summands
  auto add = [&](std::span<const int64_t> extents, std::span<const int64_t> strides, int sign) {
    for (size_t d = 0; d < extents.size(); ++d) {
      const Wide stride = sign * Wide{strides[d]};
      if (extents[d] == 1 || stride == 0) continue;
      if (stride < 0) shift += stride * (extents[d] - 1);
      terms.push_back({size_of(strides[d]), extents[d] - 1});
    }
  };
  if (is_empty(a.extents) || is_empty(b.extents)) return false;
  add(a.extents, a.strides, 1);
  add(b.extents, b.strides, -1);
  const Wide distance = Wide{reinterpret_cast<intptr_t>(b.base)} - reinterpret_cast<intptr_t>(a.base);
  SumSearch search(std::move(terms));
  return search.find(distance - shift - a.element + 1, distance - shift + b.element - 1) != SumSearch::Never;
}

bool strides_nest(std::span<const int64_t> extents, std::span<const int64_t> strides) {
  const InlineVector<size_t, 8> dims = by_stride(extents, strides);
  Wide reach = 0;
  for (size_t k = dims.size(); k-- > 0;) {
    const Wide stride = size_of(strides[dims[k]]);
    if (stride <= reach) return false;
    reach += stride * (extents[dims[k]] - 1);
  }
  return true;
}

Separation separation(std::span<const int64_t> extents, std::span<const int64_t> strides) {
  // Two elements have one address where the differences of their coordinates, not all 0, give a sum of 0. Let the
  // dimension with the largest stride in which they differ be the k-th, the difference there positive: the others, each
  // counted from its least value, must make up for it.
  if (is_empty(extents) || strides_nest(extents, strides)) return {};
  const InlineVector<size_t, 8> dims = by_stride(extents, strides);
  Separation out;
  const auto found = [&](const SumSearch* search, size_t k) {
    out = {Separation::Together, std::vector<int64_t>(extents.size()), std::vector<int64_t>(extents.size())};
    const auto differ = [&](size_t d, Wide by) {
      if (strides[d] < 0) by = -by;
      (by > 0 ? out.first : out.second)[d] = static_cast<int64_t>(by > 0 ? by : -by);
    };
    if (!search) return differ(dims[k], 1);
    for (size_t i = 0; i < search->terms().size(); ++i) {
      const size_t d = search->terms()[i].place;
      differ(d, d == dims[k] ? search->counts()[i] + 1 : search->counts()[i] - (extents[d] - 1));
    }
  };
  for (size_t k = dims.size(); k-- > 0;) {
    const Wide stride = size_of(strides[dims[k]]);
    if (stride == 0) {
      found(nullptr, k);
      return out;
    }
    std::vector<Term> terms = {{stride, Wide{extents[dims[k]]} - 2, dims[k]}};
    Wide reach = 0;
    for (size_t j = k + 1; j < dims.size(); ++j) {
      const Wide limit = Wide{extents[dims[j]]} - 1;
      terms.push_back({size_of(strides[dims[j]]), 2 * limit, dims[j]});
      reach += size_of(strides[dims[j]]) * limit;
    }
    SumSearch search(std::move(terms));
    const SumSearch::Answer answer = search.find(reach - stride, reach - stride);
    if (answer == SumSearch::Takes) {
      found(&search, k);
      return out;
    }
    if (answer == SumSearch::Open) out.kind = Separation::Open;
  }
  return out;
}

std::string fault_text(const Separation& separation) {
  if (separation.kind == Separation::Open) return "its elements could not be shown to have addresses of their own";
  return "elements " + shape_text(separation.first) + " and " + shape_text(separation.second) + " have one address";
}

std::string strides_remedy(std::span<const int64_t> declared, std::span<const int64_t> given) {
  return "pass a tensor with strides " + shape_text(declared) +
         ", or declare those of the argument: strides=" + shape_text(given);
}

}  // namespace helve
