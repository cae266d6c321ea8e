// Congruences of integers: what is known of a value modulo a number.
// Strides and constant factors leave them behind; alignment, divisibility and equations are decided by them where
// bounds are not known.
#pragma once

#include <cstdint>
#include <optional>

#include "helve/arith/interval.h"

namespace helve {

/// All integers v with v = remainder modulo `modulus`. Modulus 1 is every integer, modulus 0 the single integer
/// `remainder`. Ordered by inclusion these sets, with the empty one, are a lattice. One form for each set: 0 <=
/// remainder < modulus unless modulus is 0.
struct Residue {
  int64_t modulus = 1;
  int64_t remainder = 0;

  static Residue everything() { return {}; }
  static Residue point(int64_t value) { return {0, value}; }
  /// v = remainder modulo `modulus` (>= 0), in its one form.
  static Residue of(int64_t modulus, int64_t remainder);

  bool contains(int64_t value) const;
  /// The one remainder that every member leaves on division by `divisor` (> 0), if there is one.
  std::optional<int64_t> remainder_by(int64_t divisor) const;
  bool operator==(const Residue&) const = default;
};

/// Each result holds every value of the operation on members of the operands. A modulus beyond int64 is weakened to a
/// divisor of it.
Residue operator+(const Residue& a, const Residue& b);
Residue operator-(const Residue& a);
Residue operator*(const Residue& a, const Residue& b);
/// Division where the divisor is not 0; members that are 0 have no quotient.
Residue floor_div(const Residue& a, const Residue& b);
Residue floor_mod(const Residue& a, const Residue& b);

/// The least set that holds both (the join).
Residue unite(const Residue& a, const Residue& b);
/// What both hold (the meet); empty when no integer is in both. Where the common modulus leaves int64: one of the two,
/// which holds it.
std::optional<Residue> intersect(const Residue& a, const Residue& b);
/// All v with factor * v in the residue; empty when there is none. `factor` is not 0.
std::optional<Residue> divided(const Residue& product, int64_t factor);
/// The members of the interval that are in the residue: the ends move inwards to members. May become empty (low >
/// high).
Interval tightened(const Interval& range, const Residue& residue);

}  // namespace helve
