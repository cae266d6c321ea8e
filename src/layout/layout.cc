// Construction of layouts, their parts, sizes and spans.
// The constructor admits only layouts whose every value fits in 64 bits, so that no later question can overflow.
#include "helve/layout/layout.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/layout/notation.h"
#include "helve/support/hash.h"
#include "integers.h"

namespace helve {

using layout_detail::checked_add;
using layout_detail::checked_multiply;
using layout_detail::floor_divide;
using layout_detail::StepCounter;

int64_t Swizzle::apply(int64_t address) const {
  if (bits == 0) return address;
  int64_t low_bits = (int64_t{1} << bits) - 1;
  if (shift >= 0) return address ^ ((address & (low_bits << (base + shift))) >> shift);
  return address ^ ((address & (low_bits << base)) << -shift);
}

int64_t Swizzle::period() const {
  if (bits == 0) return 1;
  return int64_t{1} << (bits + base + (shift < 0 ? -shift : shift));
}

namespace {

Swizzle checked_swizzle(const Swizzle& swizzle) {
  int64_t distance = swizzle.shift < 0 ? -int64_t{swizzle.shift} : int64_t{swizzle.shift};
  std::string reason;
  if (swizzle.bits < 0 || swizzle.base < 0) {
    reason = "bits and base are not negative";
  } else if (swizzle.bits == 0) {
    return Swizzle{};
  } else if (swizzle.bits > distance) {
    reason = "its source and target bits overlap";
  } else if (int64_t{swizzle.bits} + swizzle.base + distance > 62) {
    reason = "its period does not fit in 64 bits";
  } else {
    return swizzle;
  }
  throw_layout_error(Code::SwizzleForm, {{"bits", int64_t{swizzle.bits}},
                                         {"base", int64_t{swizzle.base}},
                                         {"shift", int64_t{swizzle.shift}},
                                         {"reason", reason}});
}

/// The product of the extents. Throws for one below 1.
int64_t checked_size(const Iters& iters, const char* part) {
  int64_t product = 1;
  for (size_t k = 0; k < iters.size(); ++k) {
    const int64_t extent = iters[k].extent;
    if (extent < 1) [[unlikely]] {
      throw_layout_error(Code::IterExtent, {{"index", static_cast<int64_t>(k)}, {"part", part}, {"extent", extent}});
    }
    if (__builtin_mul_overflow(product, extent, &product)) [[unlikely]] {
      layout_detail::refuse_overflow(fmt::format("the number of elements of the {}", part));
    }
  }
  return product;
}

/// The least and the greatest coordinate on an axis, before the swizzle.
struct Range {
  int64_t low;
  int64_t high;
};

/// The range of an axis of a layout that was admitted: nothing overflows.
Range axis_range(const Layout& layout, Axis axis) {
  const int64_t offset = layout.offset(axis);
  Range range{offset, offset};
  for (const auto* iters : {&layout.shard(), &layout.replica()}) {
    for (const Iter& iter : *iters) {
      if (iter.axis != axis) continue;
      const int64_t reach = (iter.extent - 1) * iter.stride;
      (reach < 0 ? range.low : range.high) += reach;
    }
  }
  return range;
}

/// Throws unless every coordinate on `axis`, and its span, fit.
void check_axis(const Layout& layout, Axis axis) {
  const std::string what = "a coordinate on axis '" + axis.name() + "'";
  Range range{layout.offset(axis), layout.offset(axis)};
  for (const auto* iters : {&layout.shard(), &layout.replica()}) {
    for (const Iter& iter : *iters) {
      if (iter.axis != axis) continue;
      const int64_t reach = checked_multiply(iter.extent - 1, iter.stride, what);
      int64_t& end = reach < 0 ? range.low : range.high;
      end = checked_add(end, reach, what);
    }
  }
  layout_detail::narrow(layout_detail::Wide{range.high} - range.low + 1, "the span of axis '" + axis.name() + "'");
}

/// Whether the reaches of all iters and all offsets are below 2^62 together: then every coordinate and span fits.
bool clearly_fits(const Layout& layout) {
  constexpr uint64_t kLimit = uint64_t{1} << 62;
  uint64_t total = 0;
  auto add = [&](int64_t value) {
    const uint64_t magnitude = value < 0 ? 0 - static_cast<uint64_t>(value) : static_cast<uint64_t>(value);
    if (magnitude >= kLimit) return false;
    total += magnitude;
    return total < kLimit;
  };
  for (const auto* iters : {&layout.shard(), &layout.replica()}) {
    for (const Iter& iter : *iters) {
      int64_t reach = 0;
      if (__builtin_mul_overflow(iter.extent - 1, iter.stride, &reach) || !add(reach)) return false;
    }
  }
  for (const auto& [axis, value] : layout.offset()) {
    if (!add(value)) return false;
  }
  return true;
}

}  // namespace

Layout::Layout(const Iters& shard, const Iters& replica, const Point& offset, const Swizzle& swizzle)
    : shard_(shard), replica_(replica), offset_(offset) {
  size_ = checked_size(shard_, "shard");
  checked_size(replica_, "replica");
  if (swizzle != Swizzle{}) swizzle_ = checked_swizzle(swizzle);
  find_axes();
  if (clearly_fits(*this)) return;
  for (Axis axis : axes_) check_axis(*this, axis);
}

void Layout::find_axes() {
  auto mention = [&](Axis axis) {
    for (const Axis* at = axes_.begin(); at != axes_.end(); ++at) {
      if (*at == axis) return;
      if (axis < *at) {
        axes_.insert(at, axis);
        return;
      }
    }
    axes_.push_back(axis);
  };
  axes_.clear();
  for (const Iter& iter : shard_) mention(iter.axis);
  for (const Iter& iter : replica_) mention(iter.axis);
  for (const auto& [axis, value] : offset_) mention(axis);
}

int64_t Layout::size(Axis axis) const {
  int64_t product = 1;
  for (const Iter& iter : shard()) {
    if (iter.axis == axis) product *= iter.extent;
  }
  return product;
}

namespace {

/// The sums of digits times |stride| over the memory iters that are at most `room`, in order. These are the distances
/// of the image from its least address, and by symmetry from its greatest.
std::vector<int64_t> memory_distances(const Layout& layout, int64_t room) {
  StepCounter counter("the span", layout);
  std::vector<int64_t> distances{0};
  for (const auto* iters : {&layout.shard(), &layout.replica()}) {
    for (const Iter& iter : *iters) {
      if (iter.axis != axes::m() || iter.extent == 1 || iter.stride == 0) continue;
      const int64_t stride = iter.stride < 0 ? -iter.stride : iter.stride;
      std::vector<int64_t> next;
      for (int64_t distance : distances) {
        for (int64_t digit = 0; digit < iter.extent && distance <= room; ++digit) {
          counter.step();
          next.push_back(distance);
          if (stride > room - distance) break;
          distance += stride;
        }
      }
      std::sort(next.begin(), next.end());
      next.erase(std::unique(next.begin(), next.end()), next.end());
      distances = std::move(next);
    }
  }
  return distances;
}

/// The span of swizzled addresses. A swizzle permutes each period within itself, so the least image lies in the period
/// of the least address and the greatest in that of the greatest: only those two periods are listed.
int64_t swizzled_span(const Layout& layout, Range range) {
  const Swizzle& swizzle = layout.swizzle();
  int64_t period = swizzle.period();
  int64_t low_end = floor_divide(range.low, period) * period + (period - 1);
  int64_t high_begin = floor_divide(range.high, period) * period;
  int64_t least = low_end;
  for (int64_t d : memory_distances(layout, std::min(low_end, range.high) - range.low)) {
    least = std::min(least, swizzle.apply(range.low + d));
  }
  int64_t greatest = high_begin;
  for (int64_t d : memory_distances(layout, range.high - std::max(high_begin, range.low))) {
    greatest = std::max(greatest, swizzle.apply(range.high - d));
  }
  return layout_detail::narrow(layout_detail::Wide{greatest} - least + 1, "the span of axis 'm'");
}

}  // namespace

int64_t Layout::span(Axis axis) const {
  Range range = axis_range(*this, axis);
  if (axis == axes::m() && !swizzle().identity()) return swizzled_span(*this, range);
  return range.high - range.low + 1;
}

bool operator==(const Layout& a, const Layout& b) {
  return a.shard() == b.shard() && a.replica() == b.replica() && a.offset() == b.offset() && a.swizzle() == b.swizzle();
}

uint64_t Layout::hash() const {
  uint64_t seed = 0;
  for (const auto* iters : {&shard(), &replica()}) {
    seed = hash_mix(seed, iters->size());
    for (const Iter& iter : *iters) {
      seed = hash_mix(seed, static_cast<uint64_t>(iter.extent));
      seed = hash_mix(seed, static_cast<uint64_t>(iter.stride));
      seed = hash_mix(seed, iter.axis.hash());
    }
  }
  for (const auto& [axis, value] : offset()) seed = hash_mix(hash_mix(seed, axis.hash()), static_cast<uint64_t>(value));
  for (int part : {swizzle().bits, swizzle().base, swizzle().shift}) seed = hash_mix(seed, static_cast<uint64_t>(part));
  return seed;
}

}  // namespace helve
