// Many indices through one layout at once.
// Pictures, simulators and reference data ask for millions of coordinates; a prepared map answers in a nanosecond or
// two.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "helve/layout/layout.h"

namespace helve {

/// A layout prepared for many indices. Every coordinate is offset + the sum over k of c_k * (index / p_k), where p_k
/// are products of extents: one division by a constant (a shift, when p_k is a power of two) and one multiplication a
/// digit.
class BatchMap {
 public:
  /// Throws UnsupportedError for more replicas than kLayoutStepLimit.
  explicit BatchMap(const Layout& layout);

  /// The axes with coordinates: those of the layout.
  const Axes& axes() const { return layout_.axes(); }
  /// The number of points of every index: the replicas that differ, 1 or more.
  int64_t replicas() const { return replicas_; }

  /// Writes the coordinates on axes()[a] of every index to `out`, for index i those of replica r at i * replicas() + r.
  /// Replicas come in the order of their displacements, axis by axis. Throws BoundsError for an index outside the
  /// domain; what is written then is unspecified.
  void apply(size_t a, std::span<const int64_t> indices, int64_t* out) const;
  /// Throws what `apply` would, for a layout without axes.
  void check(std::span<const int64_t> indices) const;

 private:
  /// index / divisor, for indices of the domain: (index * factor) >> shift, of the product's upper 64 bits when `wide`.
  struct Quotient {
    uint64_t factor = 1;
    int shift = 0;
    bool wide = false;
    uint64_t coefficient = 0;  ///< modulo 2^64, in which the sums are exact
  };
  struct AxisMap {
    uint64_t offset = 0;
    std::vector<Quotient> terms;
    std::vector<int64_t> displacements;  ///< one for each replica
  };
  Quotient quotient(uint64_t divisor, uint64_t coefficient) const;
  void sums(const AxisMap& map, const int64_t* indices, size_t count, uint64_t* out) const;
  void permute(int64_t* addresses, size_t count) const;
  void prepare_replicas();

  Layout layout_;
  int64_t replicas_ = 1;
  std::vector<AxisMap> maps_;
};

}  // namespace helve
