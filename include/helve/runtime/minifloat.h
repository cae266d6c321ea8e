// Conversion between float32 and the narrow float formats.
// Collectives add them in float32 and scalar arguments arrive as wider numbers; both must round once, to nearest even.
#pragma once

#include <bit>
#include <cstdint>

namespace helve::runtime {

enum class Specials : uint8_t {
  Ieee,     ///< the largest exponent holds infinities and NaN
  OnlyNan,  ///< no infinity; the code with all bits set is NaN ("fn")
};

/// A sign, `E` exponent bits with bias 2^(E-1)-1 and `M` mantissa bits, in the low bits of a word.
/// What is too large rounds to infinity, or to NaN where there is none.
template <int E, int M, Specials S>
struct Minifloat {
  static constexpr int kBias = (1 << (E - 1)) - 1;
  static constexpr uint32_t kSign = 1u << (E + M);
  static constexpr uint32_t kTop = ((1u << E) - 1) << M;  ///< the largest exponent, mantissa 0
  static constexpr uint32_t kMaxFinite = S == Specials::Ieee ? kTop - 1 : kSign - 2;
  static constexpr uint32_t kNan = S == Specials::Ieee ? kTop | (1u << (M - 1)) : kSign - 1;
  static constexpr uint32_t kOverflow = S == Specials::Ieee ? kTop : kNan;

  static uint32_t encode(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const uint32_t sign = (bits >> 31) != 0 ? kSign : 0;
    const int exponent = static_cast<int>(bits >> 23 & 0xff);
    const uint32_t fraction = bits & 0x7fffff;
    if (exponent == 0xff) return sign | (fraction != 0 ? kNan : kOverflow);
    if (exponent == 0) return sign;  // below half of the smallest number of every such format
    // value = (2^23 + fraction) * 2^(exponent - 150); `drop` low bits lie below the format's unit in the last place.
    const int target = exponent - 127 + kBias;  // biased exponent if normal
    const int drop = 23 - M + (target < 1 ? 1 - target : 0);
    if (drop > 24) return sign;
    const uint64_t significand = (uint64_t{1} << 23) | fraction;
    const uint64_t half = uint64_t{1} << (drop - 1);
    const uint64_t rounded = (significand + half - 1 + (significand >> drop & 1)) >> drop;
    const uint64_t code = target < 1 ? rounded : (static_cast<uint64_t>(target - 1) << M) + rounded;
    return sign | (code > kMaxFinite ? kOverflow : static_cast<uint32_t>(code));
  }

  static float decode(uint32_t code) {
    const uint32_t sign = (code & kSign) != 0 ? 0x80000000u : 0;
    const uint32_t magnitude = code & (kSign - 1);
    const uint32_t exponent = magnitude >> M;
    const uint32_t fraction = magnitude & ((1u << M) - 1);
    if (magnitude > kMaxFinite) {
      const bool infinite = S == Specials::Ieee && magnitude == kTop;
      return std::bit_cast<float>(sign | (infinite ? 0x7f800000u : 0x7fc00000u));
    }
    if (exponent == 0) {
      const float unit = std::bit_cast<float>(static_cast<uint32_t>(1 - kBias - M + 127) << 23);
      const float subnormal = static_cast<float>(fraction) * unit;
      return sign != 0 ? -subnormal : subnormal;
    }
    return std::bit_cast<float>(sign | (exponent + 127 - kBias) << 23 | fraction << (23 - M));
  }
};

using Float16 = Minifloat<5, 10, Specials::Ieee>;
using Float8E5M2 = Minifloat<5, 2, Specials::Ieee>;
using Float8E4M3Fn = Minifloat<4, 3, Specials::OnlyNan>;

/// The upper half of a float32.
struct BFloat16 {
  static uint32_t encode(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    if ((bits & 0x7fffffff) > 0x7f800000) return (bits >> 16) | 0x40;
    return (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
  }
  static float decode(uint32_t code) { return std::bit_cast<float>(code << 16); }
};

}  // namespace helve::runtime
