// Search for bounded integer relations.
// Branches from the widest stride down and cuts by reach and by divisibility, so that strides that nest (every compact
// layout) are decided without branching.
#include "relation.h"

#include <algorithm>
#include <numeric>

namespace helve::layout_detail {

namespace {

class RelationSearch {
 public:
  RelationSearch(const Terms& terms, StepCounter& counter) : counter_(counter) {
    // Stable by insertion: there are few terms.
    for (size_t k = 0; k < terms.size(); ++k) {
      size_t at = k;
      order_.push_back(k);
      for (; at > 0 && magnitude(terms[order_[at - 1]].stride) < magnitude(terms[k].stride); --at) {
        order_[at] = order_[at - 1];
      }
      order_[at] = k;
    }
    for (size_t k : order_) terms_.push_back(terms[k]);
    low_.append(terms.size() + 1, 0);
    high_.append(terms.size() + 1, 0);
    divisor_.append(terms.size() + 1, 0);
    for (size_t k = terms.size(); k-- > 0;) {
      Wide a = Wide{terms_[k].stride} * terms_[k].low;
      Wide b = Wide{terms_[k].stride} * terms_[k].high;
      low_[k] = low_[k + 1] + std::min(a, b);
      high_[k] = high_[k + 1] + std::max(a, b);
      divisor_[k] = std::gcd(divisor_[k + 1], magnitude(terms_[k].stride));
    }
    values_.append(terms.size(), 0);
  }

  std::optional<Solution> run(int64_t target) {
    if (!possible(0, target) || !search(0, target)) return std::nullopt;
    Solution result(values_.size(), 0);
    for (size_t k = 0; k < order_.size(); ++k) result[order_[k]] = values_[k];
    return result;
  }

 private:
  static uint64_t magnitude(int64_t v) {
    return v < 0 ? uint64_t{0} - static_cast<uint64_t>(v) : static_cast<uint64_t>(v);
  }

  /// Whether terms k.. may sum to `rest`, by reach and divisibility.
  bool possible(size_t k, Wide rest) const {
    if (rest < low_[k] || rest > high_[k]) return false;
    return divisor_[k] == 0 ? rest == 0 : rest % static_cast<Wide>(divisor_[k]) == 0;
  }

  bool accept(size_t k, Wide rest, int64_t value) {
    counter_.step();
    Wide next = rest - Wide{terms_[k].stride} * value;
    values_[k] = value;
    return possible(k + 1, next) && search(k + 1, next);
  }

  bool search(size_t k, Wide rest) {
    if (k == terms_.size()) return rest == 0;
    const Term& term = terms_[k];
    if (term.stride == 0) return accept(k, rest, std::clamp<int64_t>(0, term.low, term.high));
    // The coefficients that leave a rest within the reach of the later terms.
    Wide stride = term.stride;
    Wide from = stride > 0 ? ceil_divide(rest - high_[k + 1], stride) : ceil_divide(low_[k + 1] - rest, -stride);
    Wide to = stride > 0 ? floor_divide(rest - low_[k + 1], stride) : floor_divide(high_[k + 1] - rest, -stride);
    from = std::max<Wide>(from, term.low);
    to = std::min<Wide>(to, term.high);
    if (from > to) return false;
    Wide middle = std::clamp<Wide>(0, from, to);
    for (Wide delta = 0; middle + delta <= to || middle - delta >= from; ++delta) {
      if (middle + delta <= to && accept(k, rest, static_cast<int64_t>(middle + delta))) return true;
      if (delta != 0 && middle - delta >= from && accept(k, rest, static_cast<int64_t>(middle - delta))) return true;
    }
    return false;
  }

  static Wide floor_divide(Wide a, Wide b) { return a / b - (a % b < 0 ? 1 : 0); }
  static Wide ceil_divide(Wide a, Wide b) { return -floor_divide(-a, b); }

  StepCounter& counter_;
  InlineVector<size_t, 8> order_;
  Terms terms_;
  InlineVector<Wide, 9> low_;
  InlineVector<Wide, 9> high_;
  InlineVector<uint64_t, 9> divisor_;
  Solution values_;
};

}  // namespace

std::optional<Solution> solve_relation(const Terms& terms, int64_t target, StepCounter& counter) {
  return RelationSearch(terms, counter).run(target);
}

}  // namespace helve::layout_detail
