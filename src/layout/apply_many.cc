// Coordinates of many indices.
// Digits are differences of quotients, so a coordinate is a weighted sum of quotients of the index by constants, and no
// division depends on another one.
#include "helve/layout/apply_many.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "blocks.h"
#include "helve/support/text.h"
#include "integers.h"

namespace helve {

BatchMap::Quotient BatchMap::quotient(uint64_t divisor, uint64_t coefficient) const {
  if (std::has_single_bit(divisor)) return {1, std::countr_zero(divisor), false, coefficient};
  // Law: with l = ceil(log2 d) and f = floor(2^(b + l) / d) + 1 the error f * d - 2^(b + l) is in (0, d], so that for
  // n < 2^b floor(n * f / 2^(b + l)) = floor(n / d). f fits in b + 1 bits because 2^l < 2 * d; with b = 31 the product
  // fits in 64 bits.
  int log = std::bit_width(divisor - 1);
  bool wide = layout_.size() > int64_t{1} << 31;
  int bits = wide ? 63 : 31;
  auto factor = static_cast<uint64_t>(((static_cast<unsigned __int128>(1) << (bits + log)) / divisor) + 1);
  return {factor, wide ? log - 1 : bits + log, wide, coefficient};
}

BatchMap::BatchMap(const Layout& layout) : layout_(layout), maps_(layout.axes().size()) {
  Iters shard = layout_detail::normalize_shard(layout.shard());
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
  Points points = alone.apply(0);
  replicas_ = static_cast<int64_t>(points.size());
  for (size_t a = 0; a < maps_.size(); ++a) {
    maps_[a].displacements.clear();
    for (const Point& point : points) maps_[a].displacements.push_back(point.at(axes()[a]));
  }
}

namespace {

/// Indices go through in blocks that stay in the first cache.
constexpr size_t kBlock = 1024;

/// The loops that take the time, written once and compiled for the widest vectors of the machine.
struct Loops {
  uint64_t (*greatest)(const int64_t* indices, size_t count);
  /// out += ((index * factor) >> shift) * coefficient
  void (*add)(const int64_t* indices, size_t count, uint64_t factor, int shift, uint64_t coefficient, uint64_t* out);
  /// values ^= ((values & mask) >> right) << left
  void (*permute)(int64_t* values, size_t count, uint64_t mask, int right, int left);
};

[[gnu::always_inline]] inline uint64_t greatest_of(const int64_t* indices, size_t count) {
  uint64_t greatest = 0;
  for (size_t i = 0; i < count; ++i) greatest = std::max(greatest, static_cast<uint64_t>(indices[i]));
  return greatest;
}

[[gnu::always_inline]] inline void add_quotients(const int64_t* indices, size_t count, uint64_t factor, int shift,
                                                 uint64_t coefficient, uint64_t* __restrict out) {
  if (factor == 1) {
    for (size_t i = 0; i < count; ++i) out[i] += (static_cast<uint64_t>(indices[i]) >> shift) * coefficient;
    return;
  }
  for (size_t i = 0; i < count; ++i) out[i] += (static_cast<uint64_t>(indices[i]) * factor >> shift) * coefficient;
}

[[gnu::always_inline]] inline void exchange_bits(int64_t* values, size_t count, uint64_t mask, int right, int left) {
  for (size_t i = 0; i < count; ++i) {
    auto value = static_cast<uint64_t>(values[i]);
    values[i] = static_cast<int64_t>(value ^ (((value & mask) >> right) << left));
  }
}

#define HELVE_LOOPS(name, attribute)                                                                              \
  attribute uint64_t greatest_##name(const int64_t* indices, size_t count) { return greatest_of(indices, count); } \
  attribute void add_##name(const int64_t* indices, size_t count, uint64_t factor, int shift, uint64_t coefficient, \
                            uint64_t* out) {                                                                      \
    add_quotients(indices, count, factor, shift, coefficient, out);                                               \
  }                                                                                                               \
  attribute void permute_##name(int64_t* values, size_t count, uint64_t mask, int right, int left) {              \
    exchange_bits(values, count, mask, right, left);                                                              \
  }
HELVE_LOOPS(plain, )
#if defined(__x86_64__)
HELVE_LOOPS(avx2, [[gnu::target("avx2")]])
HELVE_LOOPS(avx512, [[gnu::target("avx512f,avx512dq,avx512vl,prefer-vector-width=512")]])
#endif
#undef HELVE_LOOPS

const Loops& loops() {
  static const Loops chosen = [] {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl")) {
      return Loops{greatest_avx512, add_avx512, permute_avx512};
    }
    if (__builtin_cpu_supports("avx2")) return Loops{greatest_avx2, add_avx2, permute_avx2};
#endif
    return Loops{greatest_plain, add_plain, permute_plain};
  }();
  return chosen;
}

void check_indices(const int64_t* indices, size_t count, int64_t size) {
  if (loops().greatest(indices, count) < static_cast<uint64_t>(size)) return;
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
    if (!term.wide) {
      loops().add(indices, count, term.factor, term.shift, term.coefficient, out);
      continue;
    }
    for (size_t i = 0; i < count; ++i) {
      out[i] += (high_product(static_cast<uint64_t>(indices[i]), term.factor) >> term.shift) * term.coefficient;
    }
  }
}

void BatchMap::permute(int64_t* addresses, size_t count) const {
  const Swizzle& swizzle = layout_.swizzle();
  uint64_t bits = (uint64_t{1} << swizzle.bits) - 1;
  int right = std::max(swizzle.shift, 0);
  loops().permute(addresses, count, bits << (swizzle.base + right), right, right - swizzle.shift);
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
    int64_t* block = out + begin * replicas;
    sums(map, indices.data() + begin, count, base.data());
    if (replicas == 1) {
      std::memcpy(block, base.data(), count * sizeof(int64_t));
    } else {
      for (size_t i = 0; i < count; ++i) {
        for (size_t r = 0; r < replicas; ++r) {
          block[i * replicas + r] = static_cast<int64_t>(base[i] + static_cast<uint64_t>(map.displacements[r]));
        }
      }
    }
    if (swizzled) permute(block, count * replicas);
  }
}

}  // namespace helve
