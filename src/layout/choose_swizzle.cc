// The swizzle of a tile: by rule where the rule is proved, else by trying all.
// Swizzles are usually copied from tables of power-of-two shapes; the rule covers every row stride, and what it does
// not cover is searched and compared with padding.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "helve/layout/banks.h"
#include "integers.h"

namespace helve {

std::string_view to_string(SwizzleVerdict verdict) {
  switch (verdict) {
    case SwizzleVerdict::Proved: return "proved";
    case SwizzleVerdict::Searched: return "searched";
    case SwizzleVerdict::Padding: return "padding is better";
  }
  HELVE_FAIL("a verdict without a name");
}

Swizzle column_swizzle(int64_t vectors, int64_t slots, int64_t width) {
  int k = std::countr_zero(static_cast<uint64_t>(slots));
  int z = std::countr_zero(static_cast<uint64_t>(vectors));
  int bits = std::min(k, z);
  if (bits == 0) return Swizzle{};
  return Swizzle{bits, std::countr_zero(static_cast<uint64_t>(width)), std::max(k, z)};
}

namespace {

[[noreturn]] void refuse_choice(const std::string& reason) {
  throw_layout_error(Code::BankAccess, {{"operation", "choose_swizzle"}, {"reason", reason}});
}

struct Cost {
  int64_t extra = 0;
  int64_t depth = 0;
};

/// One phase of an access: the rows and columns at which its active threads begin.
struct Phase {
  int64_t width;
  std::vector<std::pair<int64_t, int64_t>> starts;
};

/// A tile and the accesses that it serves.
struct Tile {
  int64_t rows;
  int64_t stride;  ///< of rows, in elements
  int64_t element_bytes;
  std::vector<BankAccess> accesses;
  std::vector<Phase> phases = {};

  Layout layout(int64_t padding, const Swizzle& swizzle) const {
    return Layout({{rows, stride + padding, axes::m()}, {stride, 1, axes::m()}}, {}, {}, swizzle);
  }

  void prepare() {
    for (const BankAccess& access : accesses) {
      auto served = static_cast<size_t>(std::min(kWarp, kBanks * kBankBytes / (access.width * element_bytes)));
      for (size_t t = 0; t < access.first.size(); ++t) {
        if (t % served == 0) phases.push_back({access.width, {}});
        if (access.first[t] == BankAccess::kInactive) continue;
        phases.back().starts.push_back({access.first[t] / stride, access.first[t] % stride});
      }
    }
  }

  /// What bank_conflicts reports of all accesses; stops where the extra steps reach `enough`.
  Cost cost(int64_t padding, const Swizzle& swizzle, int64_t enough = std::numeric_limits<int64_t>::max()) const {
    Cost cost;
    for (const Phase& phase : phases) {
      int64_t depth = phase_depth(phase, padding, swizzle);
      cost.depth = std::max(cost.depth, depth);
      cost.extra += std::max<int64_t>(depth - 1, 0);
      if (cost.extra >= enough) break;
    }
    return cost;
  }

 private:
  int64_t phase_depth(const Phase& phase, int64_t padding, const Swizzle& swizzle) const {
    std::array<std::array<int64_t, kWarp>, kBanks> words;
    std::array<int64_t, kBanks> counts{};
    int64_t depth = 0;
    for (auto [row, column] : phase.starts) {
      int64_t byte = swizzle.apply(row * (stride + padding) + column) * element_bytes;
      int64_t last = (byte + phase.width * element_bytes - 1) / kBankBytes;
      for (int64_t word = byte / kBankBytes; word <= last; ++word) {
        auto bank = static_cast<size_t>(word % kBanks);
        auto end = words[bank].begin() + counts[bank];
        if (std::find(words[bank].begin(), end, word) != end) continue;
        *end = word;
        depth = std::max(depth, ++counts[bank]);
      }
    }
    return depth;
  }
};

/// Whether the swizzle sends [0, size) to itself. It permutes each period within itself, so only the last, begun one
/// can lose an address.
bool stays_inside(const Swizzle& swizzle, int64_t size) {
  for (int64_t address = size - size % swizzle.period(); address < size; ++address) {
    if (swizzle.apply(address) >= size) return false;
  }
  return true;
}

/// Every column of vectors, whole warps and the rest.
std::vector<BankAccess> column_accesses(int64_t rows, int64_t stride, int64_t width) {
  std::vector<BankAccess> all;
  for (int64_t column = 0; column < stride; column += width) {
    BankAccess& access = all.emplace_back();
    access.width = width;
    for (int64_t row = 0; row < rows; ++row) access.first.push_back(row * stride + column);
  }
  return all;
}

/// The best swizzle that keeps `width` elements together and moves nothing out of the tile; of equals the one with
/// fewest bits, then the shortest shift. A shift below 0 keys higher bits by lower ones.
std::pair<Swizzle, Cost> search(const Tile& tile, int64_t width) {
  Swizzle best;
  Cost least = tile.cost(0, best);
  int64_t size = tile.rows * tile.stride;
  int base = std::countr_zero(static_cast<uint64_t>(width));
  int address_bits = std::bit_width(static_cast<uint64_t>(size - 1));
  for (int bits = 1; bits <= 6 && least.extra > 0; ++bits) {
    for (int shift = bits; bits + base + shift <= address_bits; ++shift) {
      for (int low = base; bits + low + shift <= address_bits; ++low) {
        for (int sign : {1, -1}) {
          Swizzle swizzle{bits, low, sign * shift};
          if (!stays_inside(swizzle, size)) continue;
          Cost cost = tile.cost(0, swizzle, least.extra);
          if (cost.extra >= least.extra) continue;
          least = cost;
          best = swizzle;
        }
      }
    }
  }
  return {best, least};
}

/// Rows as many vectors longer as conflicts need: the least padding of fewest conflicts.
std::pair<int64_t, Cost> best_padding(const Tile& tile, int64_t width) {
  int64_t padding = 0;
  Cost least = tile.cost(0, {});
  for (int64_t p = width; p <= kBanks * kBankBytes / tile.element_bytes && least.extra > 0; p += width) {
    Cost cost = tile.cost(p, {}, least.extra);
    if (cost.extra >= least.extra) continue;
    least = cost;
    padding = p;
  }
  return {padding, least};
}

/// What a search and padding do for the accesses of a prepared tile.
SwizzleChoice searched(const Tile& tile, int64_t width) {
  SwizzleChoice choice;
  choice.plain_depth = tile.cost(0, {}).depth;
  auto [padding, padded] = best_padding(tile, width);
  choice.padding = padding;
  choice.padded_depth = padded.depth;
  choice.padding_bytes = padding * tile.rows * tile.element_bytes;
  auto [swizzle, cost] = search(tile, width);
  choice.swizzle = swizzle;
  choice.depth = cost.depth;
  int64_t worst = 0;
  for (const BankAccess& access : tile.accesses) {
    worst = std::max(worst, bank_conflicts(tile.layout(0, swizzle), access, tile.element_bytes).depth());
  }
  HELVE_CHECK(worst == cost.depth, "the search counted other conflicts than bank_conflicts");
  choice.verdict = padded.extra < cost.extra ? SwizzleVerdict::Padding : SwizzleVerdict::Searched;
  return choice;
}

void check_tile(int64_t rows, int64_t row_stride, int64_t width) {
  for (int64_t extent : {rows, row_stride, width}) {
    if (extent < 1) throw_layout_error(Code::BelowOne, {{"operation", "choose_swizzle"}, {"value", extent}});
  }
  if (row_stride % width != 0) {
    refuse_choice(fmt::format("rows of {} elements do not keep vectors of {} aligned", row_stride, width));
  }
  // A search lists every vector of the tile up to a thousand times.
  if (layout_detail::checked_multiply(rows, row_stride, "the size of a tile") > kLayoutStepLimit / 16) {
    refuse_choice(fmt::format("a tile of {} rows of {} elements is beyond the limit of {} elements", rows, row_stride,
                              kLayoutStepLimit / 16));
  }
}

}  // namespace

SwizzleChoice choose_swizzle(int64_t rows, int64_t row_stride, int64_t element_bytes, int64_t width,
                             const std::vector<BankAccess>& others) {
  check_tile(rows, row_stride, width);
  bank_conflicts(Layout({{width, 1, axes::m()}}), {{0}, width}, element_bytes);  // refuses what is no access
  Tile tile{rows, row_stride, element_bytes, column_accesses(rows, row_stride, width)};
  tile.accesses.insert(tile.accesses.end(), others.begin(), others.end());
  for (const BankAccess& access : others) {
    bank_conflicts(tile.layout(0, {}), access, element_bytes);
    width = std::max(width, access.width);
  }
  if (row_stride % width != 0) check_tile(rows, row_stride, width);
  tile.prepare();
  int64_t bytes = width * element_bytes;
  if (!others.empty() || bytes < kBankBytes) return searched(tile, width);
  SwizzleChoice choice;
  choice.plain_depth = tile.cost(0, {}).depth;
  auto [padding, padded] = best_padding(tile, width);
  choice.padding = padding;
  choice.padded_depth = padded.depth;
  choice.padding_bytes = padding * rows * element_bytes;
  choice.swizzle = column_swizzle(row_stride / width, kBanks * kBankBytes / bytes, width);
  choice.depth = tile.cost(0, choice.swizzle).depth;
  HELVE_CHECK(choice.depth == 1, "the closed-form swizzle has conflicts");
  return choice;
}

SwizzleChoice search_swizzle(int64_t rows, int64_t row_stride, int64_t element_bytes, int64_t width,
                             const std::vector<BankAccess>& accesses) {
  for (const BankAccess& access : accesses) width = std::max(width, access.width);
  check_tile(rows, row_stride, width);
  Tile tile{rows, row_stride, element_bytes, accesses};
  for (const BankAccess& access : accesses) bank_conflicts(tile.layout(0, {}), access, element_bytes);
  tile.prepare();
  return searched(tile, width);
}

}  // namespace helve
