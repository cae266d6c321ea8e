// Intervals of integers, each end possibly unknown.
// Integers of type `index` are unbounded, so an end outside int64 is dropped or weakened, never wrapped.
#pragma once

#include <cstdint>
#include <optional>

namespace helve {

/// All integers v with low <= v <= high; an absent end is no bound. With `low > high` it is empty (contradictory
/// facts).
struct Interval {
  std::optional<int64_t> low;
  std::optional<int64_t> high;

  static Interval everything() { return {}; }
  static Interval point(int64_t value) { return {value, value}; }

  bool is_empty() const { return low && high && *low > *high; }
  /// The one value of the interval, if it has exactly one.
  std::optional<int64_t> single() const { return low && high && *low == *high ? low : std::nullopt; }
  bool within(int64_t least, int64_t greatest) const { return low && high && *low >= least && *high <= greatest; }
  bool at_least(int64_t value) const { return low && *low >= value; }
  bool at_most(int64_t value) const { return high && *high <= value; }
  bool operator==(const Interval&) const = default;
};

/// Floor division and modulo; the divisor is not 0 and the quotient fits (not INT64_MIN // -1).
int64_t floor_quotient(int64_t value, int64_t divisor);
int64_t floor_remainder(int64_t value, int64_t divisor);

/// Each result contains every value of the operation on members of the operands.
Interval operator+(const Interval& a, const Interval& b);
Interval operator-(const Interval& a);
Interval operator*(const Interval& a, const Interval& b);
Interval floor_div(const Interval& a, const Interval& b);
Interval floor_mod(const Interval& a, const Interval& b);
Interval min(const Interval& a, const Interval& b);
Interval max(const Interval& a, const Interval& b);
Interval abs(const Interval& a);
/// The smallest interval that contains both; the intersection.
Interval unite(const Interval& a, const Interval& b);
Interval intersect(const Interval& a, const Interval& b);

}  // namespace helve
