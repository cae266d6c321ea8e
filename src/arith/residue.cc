// Arithmetic of congruences.
// With a = r mod m and b = s mod n: a + b = r + s mod gcd(m, n), a * b = r * s mod gcd(m * n, m * s, n * r). Computed
// in 128 bits, so that no modulus wraps; what does not fit int64 is weakened to a power of two that divides it.
#include "helve/arith/residue.h"

#include "helve/support/diagnostic.h"
#include "int64_ends.h"

namespace helve {

namespace {

using Wide = __int128;
constexpr int kWidestPower = 62;

Wide wide_gcd(Wide a, Wide b) {
  if (a < 0) a = -a;
  if (b < 0) b = -b;
  while (b != 0) {
    const Wide rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

Wide wide_remainder(Wide value, Wide divisor) {
  const Wide rest = value % divisor;
  return rest < 0 ? rest + divisor : rest;
}

/// The residue of 128-bit parts (modulus >= 0), weakened to fit.
Residue fitted(Wide modulus, Wide remainder) {
  if (modulus == 0) {
    if (remainder >= kInt64Min && remainder <= kInt64Max) return {0, static_cast<int64_t>(remainder)};
    modulus = Wide{1} << kWidestPower;
  } else if (modulus > kInt64Max) {
    modulus = wide_gcd(modulus, Wide{1} << kWidestPower);
  }
  return {static_cast<int64_t>(modulus), static_cast<int64_t>(wide_remainder(remainder, modulus))};
}

/// x with x * value = gcd(value, modulus) modulo `modulus`, for value in [0, modulus).
Wide inverse_up_to_gcd(Wide value, Wide modulus) {
  Wide a = value, b = modulus, x = 1, y = 0;  // x * value = a, y * value = b modulo modulus
  while (b != 0) {
    const Wide q = a / b, rest = a - q * b, next = x - q * y;
    a = b;
    b = rest;
    x = y;
    y = next;
  }
  return wide_remainder(x, modulus);
}

}  // namespace

Residue Residue::of(int64_t modulus, int64_t remainder) {
  HELVE_CHECK(modulus >= 0, "a modulus is not negative");
  return fitted(modulus, remainder);
}

bool Residue::contains(int64_t value) const {
  return modulus == 0 ? value == remainder : wide_remainder(value, modulus) == remainder;
}

std::optional<int64_t> Residue::remainder_by(int64_t divisor) const {
  HELVE_CHECK(divisor > 0, "a remainder by a number that is not positive");
  if (modulus % divisor != 0) return std::nullopt;
  return static_cast<int64_t>(wide_remainder(remainder, divisor));
}

Residue operator+(const Residue& a, const Residue& b) {
  return fitted(wide_gcd(a.modulus, b.modulus), Wide{a.remainder} + b.remainder);
}

Residue operator-(const Residue& a) { return fitted(a.modulus, -Wide{a.remainder}); }

Residue operator*(const Residue& a, const Residue& b) {
  const Wide crossed = wide_gcd(Wide{a.modulus} * b.remainder, Wide{b.modulus} * a.remainder);
  return fitted(wide_gcd(Wide{a.modulus} * b.modulus, crossed), Wide{a.remainder} * b.remainder);
}

Residue floor_div(const Residue& a, const Residue& b) {
  if (b.modulus != 0 || b.remainder == 0) return {};
  const Wide c = b.remainder;
  if (c == kInt64Min) return {};  // its negative does not fit
  if (c < 0) return floor_div(-a, -b);
  if (a.modulus % c != 0) return {};
  return fitted(a.modulus / c, floor_quotient(a.remainder, b.remainder));
}

Residue floor_mod(const Residue& a, const Residue& b) {
  // a - b * q for some integer q; by a positive number that divides the modulus, the remainder itself.
  if (b.modulus == 0 && b.remainder > 0) {
    if (auto known = a.remainder_by(b.remainder)) return Residue::point(*known);
  }
  if (b.modulus == 0 && b.remainder < 0 && b.remainder != kInt64Min) return -floor_mod(-a, -b);
  const Wide divisor = wide_gcd(b.modulus, b.remainder);
  if (divisor == 0) return {};
  return fitted(wide_gcd(a.modulus, divisor), a.remainder);
}

Residue unite(const Residue& a, const Residue& b) {
  return fitted(wide_gcd(wide_gcd(a.modulus, b.modulus), Wide{a.remainder} - b.remainder), a.remainder);
}

std::optional<Residue> intersect(const Residue& a, const Residue& b) {
  if (a.modulus == 0) return b.contains(a.remainder) ? std::optional(a) : std::nullopt;
  if (b.modulus == 0) return a.contains(b.remainder) ? std::optional(b) : std::nullopt;
  const Wide gcd = wide_gcd(a.modulus, b.modulus), apart = Wide{b.remainder} - a.remainder;
  if (apart % gcd != 0) return std::nullopt;
  const Wide common = a.modulus / gcd * b.modulus;
  if (common > kInt64Max) return a.modulus >= b.modulus ? a : b;
  // a.remainder + k * a.modulus = b.remainder modulo b.modulus.
  const Wide part = b.modulus / gcd;
  const Wide k =
      wide_remainder(apart / gcd, part) * inverse_up_to_gcd(wide_remainder(a.modulus / gcd, part), part) % part;
  return fitted(common, a.remainder + k * a.modulus);
}

std::optional<Residue> divided(const Residue& product, int64_t factor) {
  HELVE_CHECK(factor != 0, "a division by 0");
  if (product.modulus == 0) {
    const Wide quotient = Wide{product.remainder} / factor;
    return product.remainder % Wide{factor} == 0 ? std::optional(fitted(0, quotient)) : std::nullopt;
  }
  const Wide gcd = wide_gcd(product.modulus, factor);
  if (product.remainder % gcd != 0) return std::nullopt;
  const Wide modulus = product.modulus / gcd;
  const Wide inverse = inverse_up_to_gcd(wide_remainder(Wide{factor} / gcd, modulus), modulus);
  return fitted(modulus, wide_remainder(product.remainder / gcd, modulus) * inverse);
}

Interval tightened(const Interval& range, const Residue& residue) {
  if (residue.modulus == 0) return intersect(range, Interval::point(residue.remainder));
  const Wide m = residue.modulus;
  Interval out = range;
  if (range.low) {
    const Wide up = *range.low + wide_remainder(Wide{residue.remainder} - *range.low, m);
    out.low = up > kInt64Max ? kInt64Max : static_cast<int64_t>(up);
  }
  if (range.high) {
    const Wide down = *range.high - wide_remainder(Wide{*range.high} - residue.remainder, m);
    out.high = down < kInt64Min ? kInt64Min : static_cast<int64_t>(down);
  }
  return out;
}

}  // namespace helve
