// Checked integers and shapes.
// Every value of a layout fits in 64 bits or is refused; products are formed in 128 bits and narrowed in one place.
#pragma once

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
int64_t shape_product(const std::vector<int64_t>& shape);

/// Throws ShapeError unless `layout` admits `shape`.
void check_admitted(const Layout& layout, const std::vector<int64_t>& shape);

/// Floor division, divisor above 0.
inline int64_t floor_divide(int64_t a, int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

/// Counts the steps of a search and refuses after kLayoutStepLimit.
class StepCounter {
 public:
  StepCounter(std::string_view operation, const Layout& layout) : operation_(operation), layout_(layout) {}
  void step(int64_t count = 1) {
    used_ += count;
    if (used_ > kLayoutStepLimit) refuse();
  }

 private:
  [[noreturn]] void refuse() const;
  std::string_view operation_;
  const Layout& layout_;
  int64_t used_ = 0;
};

/// D0 and D1: the unique shortest iters of the same map, without units; iters of stride 0 on `m`.
std::vector<Iter> normalize_shard(const std::vector<Iter>& shard);

/// Iters cut into blocks, one for each dimension of a shape.
struct Blocks {
  std::vector<Iter> iters;
  std::vector<size_t> separators;

  std::vector<Iter> block(size_t d) const {
    auto at = [&](size_t k) { return iters.begin() + static_cast<ptrdiff_t>(separators[k]); };
    return {at(d), at(d + 1)};
  }
};

/// Where a shape cuts an iter off a divisor.
struct CutFailure {
  size_t dim;
  int64_t needed;
  Iter iter;
};

/// Cuts normalized iters with as many elements as `shape`; none, and `failure` filled, when no equal iters have such
/// blocks.
std::optional<Blocks> try_cut_blocks(const std::vector<Iter>& iters, const std::vector<int64_t>& shape,
                                     CutFailure* failure);

/// The same, or DivisibilityError, which names `layout`.
Blocks cut_blocks(const std::vector<Iter>& iters, const std::vector<int64_t>& shape, const Layout& layout);

}  // namespace helve::layout_detail
