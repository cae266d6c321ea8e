// Coordinates of many indices.
// Digits are differences of quotients, so a coordinate is a weighted sum of quotients of the index by constants, and no
// division depends on another one.
#include "helve/layout/apply_many.h"

#include <algorithm>
#include <array>
#include <bit>

#include "helve/support/text.h"
#include "integers.h"

namespace helve {

BatchMap::Quotient BatchMap::quotient(uint64_t divisor, uint64_t coefficient) {
  if (std::has_single_bit(divisor)) return {0, std::countr_zero(divisor), coefficient};
  // Law: with l = ceil(log2 d) and f = floor(2^(63 + l) / d) + 1 the error f * d - 2^(63 + l) is in (0, d], so that for
  // n < 2^63 floor(n * f / 2^(63 + l)) = floor(n / d). f fits in 64 bits because 2^l < 2 * d.
  int log = std::bit_width(divisor - 1);
  auto factor = static_cast<uint64_t>(((static_cast<unsigned __int128>(1) << (63 + log)) / divisor) + 1);
  return {factor, log - 1, coefficient};
}

BatchMap::BatchMap(const Layout& layout) : layout_(layout), maps_(layout.axes().size()) {
  std::vector<Iter> shard = layout_detail::normalize_shard(layout.shard());
  for (size_t a = 0; a < maps_.size(); ++a) {
    Axis axis = axes()[a];
    maps_[a].offset = static_cast<uint64_t>(layout.offset(axis));
    // digit k = q_k - e_k * q_(k+1), where q_k is the index divided by the product of the faster extents.
    uint64_t product = 1;
    uint64_t carried = 0;
    for (size_t k = shard.size(); k-- > 0;) {
      bool here = shard[k].axis == axis;
      uint64_t stride = here ? static_cast<uint64_t>(shard[k].stride) : 0;
      if (stride - carried != 0) maps_[a].terms.push_back(quotient(product, stride - carried));
      carried = stride * static_cast<uint64_t>(shard[k].extent);
      product *= static_cast<uint64_t>(shard[k].extent);
    }
  }
  prepare_replicas();
}

void BatchMap::prepare_replicas() {
  Layout alone({}, layout_.replica());
  for (AxisMap& map : maps_) map.displacements.assign(1, 0);
  std::vector<Point> points = alone.apply(0);
  replicas_ = static_cast<int64_t>(points.size());
  for (size_t a = 0; a < maps_.size(); ++a) {
    maps_[a].displacements.clear();
    for (const Point& point : points) {
      auto it = point.find(axes()[a]);
      maps_[a].displacements.push_back(it == point.end() ? 0 : it->second);
    }
  }
}

namespace {

/// Indices go through in blocks that stay in the first cache.
constexpr size_t kBlock = 1024;

void check_indices(const int64_t* indices, size_t count, int64_t size) {
  uint64_t greatest = 0;
  for (size_t i = 0; i < count; ++i) greatest = std::max(greatest, static_cast<uint64_t>(indices[i]));
  if (greatest < static_cast<uint64_t>(size)) return;
  for (size_t i = 0; i < count; ++i) {
    if (static_cast<uint64_t>(indices[i]) < static_cast<uint64_t>(size)) continue;
    throw_layout_error(Code::CoordinateBounds,
                       {{"coordinate", shape_text(std::vector{indices[i]})}, {"shape", shape_text(std::vector{size})}});
  }
}

uint64_t high_product(uint64_t a, uint64_t b) {
  return static_cast<uint64_t>((static_cast<unsigned __int128>(a) * b) >> 64);
}

}  // namespace

void BatchMap::sums(const AxisMap& map, const int64_t* indices, size_t count, uint64_t* out) const {
  std::fill_n(out, count, map.offset);
  for (const Quotient& term : map.terms) {
    if (term.factor == 0) {
      for (size_t i = 0; i < count; ++i) out[i] += (static_cast<uint64_t>(indices[i]) >> term.shift) * term.coefficient;
    } else {
      for (size_t i = 0; i < count; ++i) {
        out[i] += (high_product(static_cast<uint64_t>(indices[i]), term.factor) >> term.shift) * term.coefficient;
      }
    }
  }
}

void BatchMap::check(std::span<const int64_t> indices) const {
  check_indices(indices.data(), indices.size(), layout_.size());
}

void BatchMap::apply(size_t a, std::span<const int64_t> indices, int64_t* out) const {
  const AxisMap& map = maps_[a];
  bool swizzled = axes()[a] == axes::m() && !layout_.swizzle().identity();
  const size_t replicas = static_cast<size_t>(replicas_);
  std::array<uint64_t, kBlock> base;
  for (size_t begin = 0; begin < indices.size(); begin += kBlock) {
    size_t count = std::min(kBlock, indices.size() - begin);
    check_indices(indices.data() + begin, count, layout_.size());
    sums(map, indices.data() + begin, count, base.data());
    int64_t* block = out + begin * replicas;
    for (size_t i = 0; i < count; ++i) {
      for (size_t r = 0; r < replicas; ++r) {
        block[i * replicas + r] = static_cast<int64_t>(base[i] + static_cast<uint64_t>(map.displacements[r]));
      }
    }
    if (!swizzled) continue;
    for (size_t i = 0; i < count * replicas; ++i) block[i] = layout_.swizzle().apply(block[i]);
  }
}

}  // namespace helve
