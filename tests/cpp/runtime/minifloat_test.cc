// Narrow floats: every code, and rounding against a search over all codes.
#include "helve/runtime/minifloat.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

namespace helve::runtime {
namespace {

TEST(Minifloat, KnownValues) {
  EXPECT_EQ(Float16::encode(1.0f), 0x3c00u);
  EXPECT_EQ(Float16::encode(65504.0f), 0x7bffu);
  EXPECT_EQ(Float16::encode(65520.0f), 0x7c00u);
  EXPECT_EQ(Float16::encode(std::ldexp(1.0f, -24)), 1u);
  EXPECT_EQ(Float16::encode(std::ldexp(1.0f, -25)), 0u);
  EXPECT_EQ(Float16::encode(-0.0f), 0x8000u);
  EXPECT_EQ(Float8E4M3Fn::decode(0x7e), 448.0f);
  EXPECT_EQ(Float8E4M3Fn::encode(464.0f), 0x7eu);
  EXPECT_EQ(Float8E4M3Fn::encode(465.0f), 0x7fu);
  EXPECT_EQ(Float8E4M3Fn::encode(std::numeric_limits<float>::infinity()), 0x7fu);
  EXPECT_EQ(Float8E5M2::decode(0x7b), 57344.0f);
  EXPECT_EQ(Float8E5M2::encode(61440.0f), 0x7cu);
  EXPECT_EQ(BFloat16::encode(1.0f), 0x3f80u);
  EXPECT_EQ(BFloat16::encode(std::bit_cast<float>(0x3f808000u)), 0x3f80u);  // tie to even
  EXPECT_EQ(BFloat16::encode(std::bit_cast<float>(0x3f818000u)), 0x3f82u);
  EXPECT_EQ(BFloat16::encode(std::bit_cast<float>(0x7f800001u)), 0x7fc0u);
}

template <class Format>
void every_code_returns() {
  for (uint32_t code = 0; code < 2 * Format::kSign; ++code) {
    const float value = Format::decode(code);
    if (std::isnan(value)) {
      EXPECT_TRUE(std::isnan(Format::decode(Format::encode(value)))) << code;
    } else {
      EXPECT_EQ(Format::encode(value), code) << code;
    }
  }
}

TEST(Minifloat, EveryCodeReturns) {
  every_code_returns<Float16>();
  every_code_returns<Float8E5M2>();
  every_code_returns<Float8E4M3Fn>();
}

/// Midpoints between neighbours go to the even code, the float just beside them to the nearer one.
template <class Format>
void midpoints_go_to_even() {
  for (uint32_t code = 0; code < Format::kMaxFinite; ++code) {
    const float low = Format::decode(code), high = Format::decode(code + 1);
    const float middle = low + (high - low) / 2;  // exact: float32 has spare bits
    EXPECT_EQ(Format::encode(middle), code % 2 == 0 ? code : code + 1) << code;
    EXPECT_EQ(Format::encode(std::nextafter(middle, 0.0f)), code) << code;
    EXPECT_EQ(Format::encode(std::nextafter(middle, high)), code + 1) << code;
    EXPECT_EQ(Format::encode(-std::nextafter(middle, high)), (code + 1) | Format::kSign) << code;
  }
}

TEST(Minifloat, RoundsToNearestEven) {
  midpoints_go_to_even<Float16>();
  midpoints_go_to_even<Float8E5M2>();
  midpoints_go_to_even<Float8E4M3Fn>();
}

}  // namespace
}  // namespace helve::runtime
