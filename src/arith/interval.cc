// Interval arithmetic on unbounded integers.
// Ends are computed in 128 bits; a low end below int64 is unknown and one above is weakened to the largest int64.
#include "helve/arith/interval.h"

#include <algorithm>
#include <array>

#include "int64_ends.h"

namespace helve {

namespace {

using Wide = __int128;
using End = std::optional<int64_t>;

End low_end(Wide value) {
  if (value < kInt64Min) return std::nullopt;
  return value > kInt64Max ? kInt64Max : static_cast<int64_t>(value);
}

End high_end(Wide value) {
  if (value > kInt64Max) return std::nullopt;
  return value < kInt64Min ? kInt64Min : static_cast<int64_t>(value);
}

Wide wide_quotient(Wide value, Wide divisor) {
  Wide quotient = value / divisor;
  return value % divisor != 0 && (value < 0) != (divisor < 0) ? quotient - 1 : quotient;
}

/// A number or an infinity; the sum of bounds needs no more, a product needs 0 * infinity = 0.
struct Extended {
  int infinite = 0;
  Wide value = 0;

  int sign() const { return infinite != 0 ? infinite : (value > 0) - (value < 0); }
  bool operator<(const Extended& other) const {
    if (infinite != other.infinite) return infinite < other.infinite;
    return infinite == 0 && value < other.value;
  }
};

Extended product(const Extended& a, const Extended& b) {
  if (a.sign() == 0 || b.sign() == 0) return {};
  if (a.infinite != 0 || b.infinite != 0) return {a.sign() * b.sign(), 0};
  return {0, a.value * b.value};
}

Extended low_of(const Interval& a) { return a.low ? Extended{0, *a.low} : Extended{-1, 0}; }
Extended high_of(const Interval& a) { return a.high ? Extended{0, *a.high} : Extended{1, 0}; }

}  // namespace

int64_t floor_quotient(int64_t value, int64_t divisor) { return static_cast<int64_t>(wide_quotient(value, divisor)); }

int64_t floor_remainder(int64_t value, int64_t divisor) {
  return static_cast<int64_t>(Wide{value} - wide_quotient(value, divisor) * divisor);
}

Interval operator+(const Interval& a, const Interval& b) {
  return {a.low && b.low ? low_end(Wide{*a.low} + *b.low) : End{},
          a.high && b.high ? high_end(Wide{*a.high} + *b.high) : End{}};
}

Interval operator-(const Interval& a) {
  return {a.high ? low_end(-Wide{*a.high}) : End{}, a.low ? high_end(-Wide{*a.low}) : End{}};
}

Interval operator*(const Interval& a, const Interval& b) {
  const std::array<Extended, 4> corners = {product(low_of(a), low_of(b)), product(low_of(a), high_of(b)),
                                           product(high_of(a), low_of(b)), product(high_of(a), high_of(b))};
  const Extended least = *std::min_element(corners.begin(), corners.end());
  const Extended greatest = *std::max_element(corners.begin(), corners.end());
  return {least.infinite ? End{} : low_end(least.value), greatest.infinite ? End{} : high_end(greatest.value)};
}

Interval floor_div(const Interval& a, const Interval& b) {
  if (a.is_empty() || b.is_empty()) return {};
  if (b.at_most(-1)) return floor_div(-a, -b);
  if (!b.at_least(1)) return {};
  Interval out;
  if (a.low && *a.low >= 0) {
    out.low = b.high ? low_end(wide_quotient(*a.low, *b.high)) : 0;
  } else if (a.low) {
    out.low = low_end(wide_quotient(*a.low, *b.low));
  }
  if (a.high && *a.high >= 0) {
    out.high = high_end(wide_quotient(*a.high, *b.low));
  } else if (a.high) {
    out.high = b.high ? high_end(wide_quotient(*a.high, *b.high)) : -1;
  }
  return out;
}

Interval floor_mod(const Interval& a, const Interval& b) {
  if (a.is_empty() || b.is_empty()) return {};
  if (b.at_most(-1)) return -floor_mod(-a, -b);
  if (!b.at_least(1)) return {};
  if (const End divisor = b.single(); divisor && a.low && a.high) {
    const Wide block = wide_quotient(*a.low, *divisor);
    if (block == wide_quotient(*a.high, *divisor)) {
      return {low_end(*a.low - block * *divisor), high_end(*a.high - block * *divisor)};
    }
  }
  Interval out{0, b.high ? high_end(Wide{*b.high} - 1) : End{}};
  if (a.at_least(0) && a.high && (!out.high || *a.high < *out.high)) out.high = a.high;
  return out;
}

Interval min(const Interval& a, const Interval& b) {
  Interval out;
  if (a.low && b.low) out.low = std::min(*a.low, *b.low);
  if (a.high || b.high) out.high = std::min(a.high.value_or(kInt64Max), b.high.value_or(kInt64Max));
  return out;
}

Interval max(const Interval& a, const Interval& b) { return -min(-a, -b); }

Interval abs(const Interval& a) {
  if (a.at_least(0)) return a;
  if (a.at_most(0)) return -a;
  Interval out{0, {}};
  if (a.low && a.high) out.high = high_end(std::max(-Wide{*a.low}, Wide{*a.high}));
  return out;
}

Interval unite(const Interval& a, const Interval& b) {
  return {a.low && b.low ? End(std::min(*a.low, *b.low)) : End{},
          a.high && b.high ? End(std::max(*a.high, *b.high)) : End{}};
}

Interval intersect(const Interval& a, const Interval& b) {
  Interval out = a;
  if (b.low && (!out.low || *b.low > *out.low)) out.low = b.low;
  if (b.high && (!out.high || *b.high < *out.high)) out.high = b.high;
  return out;
}

}  // namespace helve
