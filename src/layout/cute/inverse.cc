// Complements and inverses: what a layout leaves out, and the way back.
// All of them sort the modes by stride; what they need of the sorted modes is their precondition.
#include <fmt/format.h>

#include <numeric>

#include "complement.h"
#include "composition.h"
#include "helve/layout/cute/algebra.h"
#include "structure.h"
#include "unsupported.h"

namespace helve::cute {

namespace {

void refuse_negative(const char* operation, const Layout& layout) {
  for (const Mode& mode : layout.modes()) {
    if (mode.extent > 1 && mode.stride < 0) {
      refuse_unsupported(operation, to_string(layout), fmt::format("stride {} is negative", mode.stride),
                         "reverse the mode first");
    }
  }
}

[[noreturn]] void refuse_overlap(const char* operation, const Layout& layout, const PlacedMode& low,
                                 const PlacedMode& high) {
  if (auto found = find_collision(filter(layout))) {
    throw_layout_error(Code::CuteOverlap, {{"operation", operation},
                                           {"layout", to_string(filter(layout))},
                                           {"first", found->first},
                                           {"second", found->second},
                                           {"offset", found->offset}});
  }
  std::string reason =
      fmt::format("mode {}:{} begins inside mode {}:{}", high.extent, high.stride, low.extent, low.stride);
  throw_layout_error(Code::CuteNesting, {{"operation", operation}, {"layout", to_string(layout)}, {"reason", reason}});
}

}  // namespace

Gaps find_gaps(const char* operation, const Layout& layout) {
  refuse_negative(operation, layout);
  PlacedModes sorted = sort_by_stride(layout.modes());
  Gaps gaps;
  for (size_t k = 0; k < sorted.size(); ++k) {
    const PlacedMode& mode = sorted[k];
    if (mode.stride < gaps.end) refuse_overlap(operation, layout, sorted[k - 1], mode);
    const Quotient gap = divide(mode.stride, gaps.end);
    gaps.filled = gaps.filled && gap.rest == 0;
    const Mode between{gap.value, gaps.end};
    append_coalesced(gaps.modes, &between, &between + 1);
    gaps.end = checked_multiply(mode.extent, mode.stride, "the end of a layout");
  }
  return gaps;
}

Layout Gaps::up_to(int64_t cosize_hi) const {
  Modes result = modes;
  Mode beyond{ceil_divide(cosize_hi, end), end};
  append_coalesced(result, &beyond, &beyond + 1);
  return flat_layout(result);
}

Modes Gaps::endless() const {
  Modes result = modes;
  result.push_back({1, end});
  return result;
}

Layout complement(const Layout& layout, int64_t cosize_hi) {
  if (cosize_hi < 1) throw_layout_error(Code::BelowOne, {{"operation", "complement"}, {"value", cosize_hi}});
  return find_gaps("complement", layout).up_to(cosize_hi);
}

namespace {

/// The modes, as strides of the inverse, of the chain from stride 1 in which each begins where the one before ends.
/// Modes are sorted by strides, which differ.
Modes only_chain(const PlacedModes& sorted) {
  Modes result;
  int64_t end = 1;
  for (const PlacedMode& placed : sorted) {
    if (placed.stride < end) continue;
    if (placed.stride > end) break;
    const Mode mode{placed.extent, placed.prefix};
    append_coalesced(result, &mode, &mode + 1);
    if (__builtin_mul_overflow(end, placed.extent, &end)) break;
  }
  return result;
}

/// The longest of such chains, where strides may be equal.
Modes longest_chain(const PlacedModes& sorted) {
  // From the largest stride down: where the longest chain that begins with a mode ends, and its next mode.
  size_t count = sorted.size();
  InlineVector<int64_t, 6> ends(count, 0);
  InlineVector<size_t, 6> nexts(count, count);
  auto longest_from = [&](Wide stride, size_t begin) {
    size_t best = count;
    for (size_t j = begin; j < count && sorted[j].stride <= stride; ++j) {
      if (sorted[j].stride == stride && (best == count || ends[j] > ends[best])) best = j;
    }
    return best;
  };
  for (size_t k = count; k-- > 0;) {
    if (sorted[k].stride < 1) break;
    Wide end = Wide{sorted[k].extent} * sorted[k].stride;
    nexts[k] = longest_from(end, k + 1);
    ends[k] = nexts[k] < count ? ends[nexts[k]] : static_cast<int64_t>(std::min<Wide>(end, INT64_MAX));
  }
  Modes result;
  for (size_t k = longest_from(1, 0); k < count; k = nexts[k]) {
    Mode mode{sorted[k].extent, sorted[k].prefix};
    append_coalesced(result, &mode, &mode + 1);
  }
  return result;
}

}  // namespace

Layout right_inverse(const Layout& layout) {
  Modes modes;
  append_coalesced(modes, layout.modes().begin(), layout.modes().end());
  PlacedModes sorted = sort_by_stride(modes);
  bool equal_strides = false;
  for (size_t k = 1; k < sorted.size(); ++k) equal_strides |= sorted[k].stride == sorted[k - 1].stride;
  return flat_layout(equal_strides ? longest_chain(sorted) : only_chain(sorted));
}

Layout left_inverse(const Layout& layout) {
  refuse_negative("left_inverse", layout);
  Modes modes;
  append_coalesced(modes, layout.modes().begin(), layout.modes().end());
  PlacedModes sorted = sort_by_stride(modes);
  if (sorted.empty()) return Layout();
  Modes digits{{sorted[0].stride, 0}};
  int64_t reach = 0;  // the largest offset of the modes so far
  int64_t index = 0;  // and its index
  for (size_t k = 0; k < sorted.size(); ++k) {
    const PlacedMode& mode = sorted[k];
    reach += (mode.extent - 1) * mode.stride;
    index += (mode.extent - 1) * mode.prefix;
    bool is_top = k + 1 == sorted.size();
    int64_t extent = mode.extent;
    int64_t highest = reach / mode.stride;  // the digit that R gives the mode, at most
    if (!is_top) {
      int64_t next = sorted[k + 1].stride;
      if (next % mode.stride != 0) {
        throw_layout_error(Code::CuteNesting,
                           {{"operation", "left_inverse"},
                            {"layout", to_string(layout)},
                            {"reason", fmt::format("stride {} is no multiple of stride {}", next, mode.stride)}});
      }
      extent = next / mode.stride;
      highest = std::min(highest, extent - 1);
    }
    bool endless = is_top && mode.prefix * mode.extent == layout.size() && layout.modes().back().extent > 1;
    if (highest >= mode.extent && !endless) {
      throw_layout_error(Code::CuteLeftInverse, {{"layout", to_string(layout)}, {"index", index}, {"offset", reach}});
    }
    digits.push_back({extent, mode.prefix});
  }
  Modes result;
  append_coalesced(result, digits.begin(), digits.end());
  return flat_layout(result);
}

Layout max_common_layout(const Layout& a, const Layout& b) {
  Layout inverse = right_inverse(b);
  Outer outer(a.modes());
  Steps steps("max_common_layout");
  Pieces pieces;
  Modes result;
  int64_t index = 1;
  for (const Mode& mode : inverse.modes()) {
    if (mode.extent == 1 || outer.at(mode.stride) != index) break;
    int64_t even = outer.first_uneven(mode.extent, mode.stride, steps);
    pieces.push_back({even, mode.stride, index, 0, 0});
    bool whole = even == mode.extent;
    if (outer.carries(pieces)) {
      int64_t i = index;
      while (i < index * even && outer.at(inverse(i)) == i) {
        steps.count();
        ++i;
      }
      whole = whole && i == index * even;
      even = i / index;
    }
    Mode kept{even, mode.stride};
    append_coalesced(result, &kept, &kept + 1);
    if (!whole) break;
    index *= even;
  }
  return flat_layout(result);
}

int64_t max_common_vector(const Layout& a, const Layout& b) { return max_common_layout(a, b).size(); }

Layout domain_distribute(const IntTuple& shape, int64_t n) {
  if (n < 1) throw_layout_error(Code::BelowOne, {{"operation", "domain_distribute"}, {"value", n}});
  Layout domain(shape);
  Modes shares;
  for (const Mode& mode : domain.modes()) {
    int64_t share = std::gcd(mode.extent, n);
    shares.push_back({share, mode.stride});
    n /= share;
  }
  Modes result;
  append_coalesced(result, shares.begin(), shares.end());
  return flat_layout(result);
}

namespace {

bool divides_evenly(IntCursor shape, const Tiler& tiler) {
  if (const auto* modes = std::get_if<TilerTuple>(&tiler.value)) {
    if (modes->size() > shape.rank()) return false;
    IntCursor entry = shape.front();
    for (size_t i = 0; i < modes->size(); ++i, entry = entry.next()) {
      if (!divides_evenly(entry, (*modes)[i])) return false;
    }
    return true;
  }
  const auto* tile = std::get_if<Layout>(&tiler.value);
  if (tile == nullptr) return true;
  int64_t end = 1;  // equal tiles without rest: nested strides that end on a divisor
  for (const PlacedMode& mode : sort_by_stride(tile->modes())) {
    if (mode.stride < end || mode.stride % end != 0) return false;
    if (__builtin_mul_overflow(mode.extent, mode.stride, &end)) return false;
  }
  return product(shape) % end == 0 && filter(*tile).size() == tile->size();
}

}  // namespace

bool evenly_divides(const IntTuple& shape, const Tiler& tiler) {
  check_extents(shape.root());
  return divides_evenly(shape.root(), tiler);
}

IntTuple ceil_div(const IntTuple& shape, const Layout& tiler) { return complement(tiler, product(shape)).shape(); }

}  // namespace helve::cute
