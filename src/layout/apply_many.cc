// Coordinates of many indices.
// A digit between powers of two is a field of bits, moved by one shift when its stride is a power of two as well. Other
// digits are differences of quotients, so that no division depends on another one.
#include "helve/layout/apply_many.h"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "batch_loops.h"
#include "blocks.h"
#include "helve/support/text.h"
#include "integers.h"

namespace helve {

using layout_detail::kCacheLine;

namespace {

/// Indices go through in blocks that stay in the first cache while one axis after the other is written.
constexpr size_t kBlock = 1024;
constexpr uint64_t kHalf = uint64_t{1} << 31;

/// Whether a number modulo 2^64 is one of 32 bits with sign.
bool is_half(uint64_t value) { return value + kHalf < 2 * kHalf; }

uint64_t value_of(const BatchMap::Term& term, uint64_t index) {
  const auto product = static_cast<unsigned __int128>(index) * term.factor;
  return (static_cast<uint64_t>(term.high ? product >> 64 : product) >> term.shift & term.mask) * term.coefficient;
}

}  // namespace

BatchMap::BatchMap(const Layout& layout) : layout_(layout), terms_(axes().size()), displacements_(axes().size()) {
  const Iters shard = layout_detail::normalize_shard(layout.shard());
  for (size_t a = 0; a < terms_.size(); ++a) prepare_axis(a, shard);
  prepare_replicas();
  exchange_.down.push_back(Term{});
  exchange_.swizzle = layout.swizzle();
  for (size_t a = 0; a < terms_.size(); ++a) {
    if (axes()[a] == axes::m() && replicas_ == 1 && terms_[a].wide.empty()) terms_[a].swizzle = layout.swizzle();
  }
}

void BatchMap::prepare_axis(size_t a, const Iters& shard) {
  AxisTerms& terms = terms_[a];
  terms.offset = static_cast<uint64_t>(layout_.offset(axes()[a]));
  // Law: digit k = q_k - e_k * q_(k+1), where q_k is the index divided by the product of the faster extents. What digit
  // k leaves for q_(k+1) is carried to the next one; the last quotient is 0.
  uint64_t divisor = 1;
  uint64_t carried = 0;
  for (size_t k = shard.size(); k-- > 0;) {
    const auto extent = static_cast<uint64_t>(shard[k].extent);
    const int64_t stride = shard[k].axis == axes()[a] ? shard[k].stride : 0;
    if (std::has_single_bit(divisor) && (k == 0 || std::has_single_bit(extent))) {
      if (stride != 0) add_digit(terms, divisor, extent, stride);
    } else {
      const uint64_t coefficient = static_cast<uint64_t>(stride) - carried;
      if (coefficient != 0) add_quotient(terms, divisor, coefficient);
      carried = static_cast<uint64_t>(stride) * extent;
    }
    divisor *= extent;
  }
}

void BatchMap::add_digit(AxisTerms& terms, uint64_t divisor, uint64_t extent, int64_t stride) const {
  const int low = std::countr_zero(divisor);
  // The slowest digit may have any extent: nothing lies above it.
  const uint64_t digits = std::has_single_bit(extent) ? extent - 1 : ~uint64_t{0};
  const auto step = static_cast<uint64_t>(stride);
  const uint64_t bits = digits << std::countr_zero(step);
  uint64_t taken = 0;
  for (const auto* fields : {&terms.up, &terms.down}) {
    for (const Term& field : *fields) taken |= field.mask;
  }
  if (stride < 0 || !std::has_single_bit(step) || (taken & bits) != 0) {
    const Term term{1, low, digits, step};
    (extent <= kHalf && is_half(step) ? terms.products : terms.wide).push_back(term);
    return;
  }
  const int move = std::countr_zero(step) - low;
  std::vector<Term>& fields = move > 0 ? terms.up : terms.down;
  const auto moves_alike = [&](const Term& field) { return field.shift == std::abs(move); };
  const auto known = std::find_if(fields.begin(), fields.end(), moves_alike);
  if (known != fields.end()) {
    known->mask |= bits;
  } else {
    fields.push_back(Term{1, std::abs(move), bits});
  }
}

void BatchMap::add_quotient(AxisTerms& terms, uint64_t divisor, uint64_t coefficient) const {
  const auto size = static_cast<uint64_t>(layout_.size());
  if (std::has_single_bit(divisor)) {
    Term term{1, std::countr_zero(divisor), ~uint64_t{0}, coefficient};
    ((size - 1) / divisor < kHalf && is_half(coefficient) ? terms.products : terms.wide).push_back(term);
    return;
  }
  // Law: with l = ceil(log2 d) and f = floor(2^(b + l) / d) + 1 the error f * d - 2^(b + l) is in (0, d], so that for
  // n < 2^b floor(n * f / 2^(b + l)) = floor(n / d). f fits in b + 1 bits because 2^l < 2 * d; with b = 31 the product
  // fits in 64 bits.
  const int log = std::bit_width(divisor - 1);
  const bool high = size > kHalf;
  const int bits = high ? 63 : 31;
  const auto factor = static_cast<uint64_t>(((static_cast<unsigned __int128>(1) << (bits + log)) / divisor) + 1);
  const Term term{factor, high ? log - 1 : bits + log, ~uint64_t{0}, coefficient, high};
  (!high && is_half(coefficient) ? terms.quotients : terms.wide).push_back(term);
}

void BatchMap::prepare_replicas() {
  const Points points = Layout({}, layout_.replica()).apply(0);
  replicas_ = static_cast<int64_t>(points.size());
  for (size_t a = 0; a < terms_.size(); ++a) {
    for (const Point& point : points) displacements_[a].push_back(point.at(axes()[a]));
  }
}

namespace {

void check_indices(std::span<const int64_t> indices, int64_t size) {
  const auto bad = std::find_if(indices.begin(), indices.end(), [&](int64_t x) { return x < 0 || x >= size; });
  if (bad == indices.end()) return;
  throw_layout_error(Code::CoordinateBounds,
                     {{"coordinate", shape_text(std::vector{*bad})}, {"shape", shape_text(std::vector{size})}});
}

/// The elements before the next cache line.
size_t before_line(const int64_t* out) { return (-reinterpret_cast<uintptr_t>(out) % kCacheLine) / sizeof(int64_t); }

/// out[i * replicas + r] = base[i] + displacements[r]; with `kCount` replicas, when it is not 0.
template <size_t kCount>
void spread(std::span<const int64_t> base, std::span<const int64_t> displacements, int64_t* out) {
  std::array<uint64_t, kCount> fixed;
  for (size_t r = 0; r < kCount; ++r) fixed[r] = static_cast<uint64_t>(displacements[r]);
  const size_t count = kCount != 0 ? kCount : displacements.size();
  for (size_t i = 0; i < base.size(); ++i, out += count) {
    for (size_t r = 0; r < count; ++r) {
      const uint64_t displacement = kCount != 0 ? fixed[r] : static_cast<uint64_t>(displacements[r]);
      out[r] = static_cast<int64_t>(static_cast<uint64_t>(base[i]) + displacement);
    }
  }
}

/// The same: the powers of two that replicas mostly are have loops of their own.
void spread(std::span<const int64_t> base, std::span<const int64_t> displacements, int64_t* out) {
  switch (displacements.size()) {
    case 2: return spread<2>(base, displacements, out);
    case 4: return spread<4>(base, displacements, out);
    case 8: return spread<8>(base, displacements, out);
    default: return spread<0>(base, displacements, out);
  }
}

}  // namespace

bool BatchMap::write(size_t a, std::span<const int64_t> indices, int64_t* out) const {
  const layout_detail::BatchSum sum = layout_detail::batch_sums().front();
  const AxisTerms& terms = terms_[a];
  if (replicas_ == 1 && terms.wide.empty()) return sum(terms, indices.data(), indices.size(), layout_.size(), out);
  alignas(kCacheLine) std::array<int64_t, kBlock> storage;
  const std::span<int64_t> base(storage.data(), indices.size());
  if (!sum(terms, indices.data(), indices.size(), layout_.size(), base.data())) return false;
  for (const Term& term : terms.wide) {
    for (size_t i = 0; i < base.size(); ++i) {
      const uint64_t value = value_of(term, static_cast<uint64_t>(indices[i]));
      base[i] = static_cast<int64_t>(static_cast<uint64_t>(base[i]) + value);
    }
  }
  spread(base, displacements_[a], out);
  if (axes()[a] == axes::m() && !layout_.swizzle().identity()) {
    sum(exchange_, out, base.size() * displacements_[a].size(), layout_.size(), out);
  }
  return true;
}

void BatchMap::apply(std::span<const int64_t> indices, std::span<int64_t* const> out) const {
  if (out.empty()) return check_indices(indices, layout_.size());
  // Blocks begin where lines of the output do: a vector that lies across two lines is two stores.
  size_t count = before_line(out[0]);
  for (size_t begin = 0; begin < indices.size(); begin += count, count = kBlock) {
    count = std::min(count, indices.size() - begin);
    const auto block = indices.subspan(begin, count);
    for (size_t a = 0; a < out.size(); ++a) {
      if (!write(a, block, out[a] + begin * static_cast<size_t>(replicas_))) check_indices(block, layout_.size());
    }
  }
}

}  // namespace helve
