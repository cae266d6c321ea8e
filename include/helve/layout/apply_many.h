// Many indices through one layout at once.
// Pictures, simulators and reference data ask for millions of coordinates; a prepared map gives them about as fast as
// memory takes them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "helve/layout/layout.h"

namespace helve {

/// A layout prepared for many indices: each coordinate is an offset and a sum of terms, each of a few operations on the
/// whole index. None depends on another, so vectors of indices go through together.
class BatchMap {
 public:
  /// Throws UnsupportedError for more replicas than kLayoutStepLimit.
  explicit BatchMap(const Layout& layout);

  /// The axes with coordinates: those of the layout.
  const Axes& axes() const { return layout_.axes(); }
  /// The number of points of every index: the replicas that differ, 1 or more.
  int64_t replicas() const { return replicas_; }

  /// Writes the coordinates of every index on axes()[a] to `out[a]`, for index i those of replica r at
  /// i * replicas() + r. Replicas come in the order of their displacements, axis by axis. Throws BoundsError for an
  /// index outside the domain; what is written then is unspecified.
  void apply(std::span<const int64_t> indices, std::span<int64_t* const> out) const;

  /// ((index * factor) >> shift & mask) * coefficient, modulo 2^64.
  struct Term {
    uint64_t factor = 1;
    int shift = 0;
    uint64_t mask = ~uint64_t{0};
    uint64_t coefficient = 1;
    bool high = false;  ///< `shift` counts from bit 64 of the product
  };
  /// The terms of one axis, by the operations that they take.
  struct AxisTerms {
    uint64_t offset = 0;
    std::vector<Term> up;  ///< (index << shift) & mask: bits in another place, each place taken once
    std::vector<Term> down;  ///< (index >> shift) & mask, likewise
    std::vector<Term> products;  ///< factor 1; the digit is below 2^31, the coefficient a signed 32-bit number
    std::vector<Term> quotients;  ///< the index is below 2^31, factor and mask below 2^32, the coefficient as above
    std::vector<Term> wide;  ///< what needs longer products
    Swizzle swizzle;  ///< of the sum, where nothing but these terms and the offset adds to it
  };

 private:
  void add_digit(AxisTerms& terms, uint64_t divisor, uint64_t extent, int64_t stride) const;
  void add_quotient(AxisTerms& terms, uint64_t divisor, uint64_t coefficient) const;
  void prepare_axis(size_t a, const Iters& shard);
  void prepare_replicas();
  /// Returns false, with `out` unspecified, where an index is outside.
  bool write(size_t a, std::span<const int64_t> indices, int64_t* out) const;

  Layout layout_;
  int64_t replicas_ = 1;
  std::vector<AxisTerms> terms_;  ///< one for each axis
  std::vector<std::vector<int64_t>> displacements_;  ///< one list for each axis, an entry for each replica
  AxisTerms exchange_;  ///< the swizzle alone
};

}  // namespace helve
