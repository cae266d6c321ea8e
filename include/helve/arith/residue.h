// Congruences of integers: what is known of a value modulo a number.
// They come from strides and constant factors, and decide alignment, divisibility and equations where bounds are
// unknown.
#pragma once

#include <cstdint>
#include <optional>

#include "helve/arith/interval.h"

namespace helve {

/// All integers v with v = remainder modulo `modulus`. Modulus 1 is every integer, modulus 0 the single integer
/// `remainder`. Ordered by inclusion these sets, with the empty one, are a lattice. The form of a set is unique: 0 <=
/// remainder < modulus unless modulus is 0.
struct Residue {
  int64_t modulus = 1;
  int64_t remainder = 0;

  static Residue everything() { return {}; }
  static Residue point(int64_t value) { return {0, value}; }
  /// v = remainder modulo `modulus` (>= 0), in its unique form.
  static Residue of(int64_t modulus, int64_t remainder);

  bool contains(int64_t value) const;
  /// The remainder of all members on division by `divisor` (> 0), if it is the same.
  std::optional<int64_t> remainder_by(int64_t divisor) const;
  bool operator==(const Residue&) const = default;
};

/// Each result contains every value of the operation on members of the operands. A modulus beyond int64 is weakened to
/// a divisor of it.
Residue operator+(const Residue& a, const Residue& b);
Residue operator-(const Residue& a);
Residue operator*(const Residue& a, const Residue& b);
/// Division where the divisor is not 0; members that are 0 have no quotient.
Residue floor_div(const Residue& a, const Residue& b);
Residue floor_mod(const Residue& a, const Residue& b);

/// The smallest set that contains both (the join).
Residue unite(const Residue& a, const Residue& b);
/// The intersection (the meet); nothing if it is empty. If the common modulus overflows int64: one of the two, which
/// contains it.
std::optional<Residue> intersect(const Residue& a, const Residue& b);
/// All v with factor * v in the residue; empty when there is none. `factor` is not 0.
std::optional<Residue> divided(const Residue& product, int64_t factor);
/// The members of the interval that are in the residue: the ends move inwards to members. May become empty (low >
/// high).
Interval tightened(const Interval& range, const Residue& residue);

}  // namespace helve
