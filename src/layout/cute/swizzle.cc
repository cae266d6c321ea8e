// Swizzles: construction, text, composition, units.
// All of them are questions about which bits are read and which are written.
#include <fmt/format.h>

#include <bit>

#include "checked.h"
#include "helve/layout/cute/composed.h"
#include "recast.h"
#include "swizzle_bits.h"
#include "unsupported.h"

namespace helve::cute {

namespace {

uint64_t mask(int bits, int base) { return ((uint64_t{1} << bits) - 1) << base; }

}  // namespace

Swizzle make_swizzle(int64_t bits, int64_t base, int64_t shift) {
  Wide distance = shift < 0 ? -Wide{shift} : Wide{shift};
  const char* reason = nullptr;
  if (bits < 0 || base < 0) {
    reason = "bits and base are not negative";
  } else if (bits > distance) {
    reason = "its source and target bits overlap";
  } else if (Wide{bits} + base + distance > 62) {
    reason = "its period does not fit in 64 bits";
  }
  if (reason != nullptr) {
    throw_layout_error(Code::SwizzleForm, {{"bits", bits}, {"base", base}, {"shift", shift}, {"reason", reason}});
  }
  return {static_cast<int>(bits), static_cast<int>(base), static_cast<int>(shift)};
}

std::string to_string(const Swizzle& swizzle) {
  return fmt::format("SW_{}_{}_{}", swizzle.bits, swizzle.base, swizzle.shift);
}

int64_t size(const Swizzle& swizzle) { return int64_t{1} << (swizzle.bits + swizzle.base + std::abs(swizzle.shift)); }

Swizzle composition(const Swizzle& s, const Swizzle& t) {
  if (s.identity()) return t;
  if (t.identity()) return s;
  auto refuse_pair = [&](const char* reason) {
    refuse_unsupported("composition", to_string(s) + " o " + to_string(t), reason, kKeepStages);
  };
  if (s.shift != t.shift) refuse_pair("the shifts differ");
  uint64_t read = mask(s.bits, read_base(s));
  if (read & mask(t.bits, written_base(t))) refuse_pair("the first writes bits that the second reads");
  read ^= mask(t.bits, read_base(t));
  if (read == 0) return make_swizzle(0, std::min(s.base, t.base), s.shift);
  int low = std::countr_zero(read);
  int bits = std::popcount(read);
  if (read != mask(bits, low)) refuse_pair("the bits that are read are not neighbours");
  if (bits > std::abs(s.shift)) refuse_pair("its source and target bits overlap");
  return make_swizzle(bits, low - std::max(s.shift, 0), s.shift);
}

namespace {

int logarithm(const char* operation, const std::string& layout, int64_t n) {
  if (n >= 1 && std::has_single_bit(static_cast<uint64_t>(n))) return std::countr_zero(static_cast<uint64_t>(n));
  throw_layout_error(Code::CuteRecast, {{"operation", operation},
                                        {"layout", layout},
                                        {"factor", n},
                                        {"reason", "a swizzle moves by powers of two only"}});
}

}  // namespace

Swizzle upcast(const Swizzle& swizzle, int64_t n) {
  int base = swizzle.base - logarithm("upcast", to_string(swizzle), n);
  if (base >= 0) return make_swizzle(swizzle.bits, base, swizzle.shift);
  if (swizzle.shift < 0 && swizzle.bits > 0) {
    refuse_unsupported("upcast", to_string(swizzle), fmt::format("bits inside a unit of {} move units", n),
                       "use smaller units");
  }
  return make_swizzle(std::max(swizzle.bits + base, 0), 0, swizzle.shift);
}

Swizzle downcast(const Swizzle& swizzle, int64_t n) {
  return make_swizzle(swizzle.bits, swizzle.base + logarithm("downcast", to_string(swizzle), n), swizzle.shift);
}

Swizzle recast(const Swizzle& swizzle, int64_t old_bits, int64_t new_bits) {
  return recast_units(swizzle, old_bits, new_bits);
}

}  // namespace helve::cute
