// Checked integers and shapes.
// Every value of a layout fits in 64 bits or is refused; products are formed in 128 bits and narrowed in one place.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>
#include <vector>

#include "helve/layout/layout.h"

namespace helve::layout_detail {

using Wide = __int128;

/// UnsupportedError "`what` does not fit in 64 bits".
[[noreturn]] void refuse_overflow(std::string_view what);

inline int64_t narrow(Wide value, std::string_view what) {
  if (value != static_cast<int64_t>(value)) refuse_overflow(what);
  return static_cast<int64_t>(value);
}

inline int64_t checked_multiply(int64_t a, int64_t b, std::string_view what) { return narrow(Wide{a} * b, what); }
inline int64_t checked_add(int64_t a, int64_t b, std::string_view what) { return narrow(Wide{a} + b, what); }

/// The number of elements of a shape. Throws ShapeError for an extent below 1, UnsupportedError beyond 64 bits.
[[noreturn]] void refuse_shape(const std::vector<int64_t>& shape);
inline int64_t shape_product(const std::vector<int64_t>& shape) {
  int64_t product = 1;
  for (int64_t extent : shape) {
    if (extent < 1 || __builtin_mul_overflow(product, extent, &product)) [[unlikely]]
      refuse_shape(shape);
  }
  return product;
}

/// Throws ShapeError unless `layout` admits `shape`.
[[noreturn]] void refuse_size(const Layout& layout, const std::vector<int64_t>& shape, int64_t product);
inline void check_admitted(const Layout& layout, const std::vector<int64_t>& shape) {
  const int64_t product = shape_product(shape);
  if (product != layout.size()) [[unlikely]]
    refuse_size(layout, shape, product);
}

/// Floor division, divisor above 0.
inline int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// Counts the steps of a search and refuses after kLayoutStepLimit.
class StepCounter {
 public:
  StepCounter(std::string_view operation, const Layout& layout) : operation_(operation), layout_(layout) {}
  void step(int64_t count = 1) {
    used_ += count;
    if (used_ > kLayoutStepLimit) [[unlikely]]
      refuse();
  }
  /// Steps of `each`, `count` times.
  void step(int64_t count, int64_t each) {
    int64_t all = 0;
    if (__builtin_mul_overflow(count, each, &all) || all > kLayoutStepLimit) [[unlikely]]
      refuse();
    step(all);
  }

 private:
  [[noreturn]] void refuse() const;
  std::string_view operation_;
  const Layout& layout_;
  int64_t used_ = 0;
};

/// The quotient and the rest of numbers above 0; by a shift where the divisor is a power of two, as most extents are.
struct Quotient {
  int64_t value;
  int64_t rest;
};
inline Quotient divide(int64_t a, int64_t b) {
  if ((b & (b - 1)) == 0) return {a >> std::countr_zero(static_cast<uint64_t>(b)), a & (b - 1)};
  if (((a | b) >> 32) == 0) {
    const auto x = static_cast<uint32_t>(a);
    const auto y = static_cast<uint32_t>(b);
    return {x / y, x % y};
  }
  return {a / b, a % b};
}

}  // namespace helve::layout_detail
