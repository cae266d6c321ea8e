// Rounding to odd: exact numbers stay, others take the neighbour with a set last bit, and rounding again is right.
#include "helve/support/round_to_odd.h"

#include <gtest/gtest.h>

#include <random>

namespace helve {
namespace {

TEST(RoundToOdd, ExactNumbersStay) {
  for (const int64_t number : {int64_t{0}, int64_t{-1}, int64_t{1} << 53, INT64_MIN, -(int64_t{1} << 62)})
    EXPECT_EQ(round_to_odd(number), static_cast<double>(number));
  EXPECT_EQ(round_to_odd(uint64_t{1} << 63), 0x1p63);
  EXPECT_EQ(round_to_odd(-0.5), -0.5F);
  EXPECT_TRUE(std::signbit(round_to_odd(-0.0)));
  EXPECT_TRUE(std::isinf(round_to_odd(HUGE_VAL)));
  EXPECT_TRUE(std::isnan(round_to_odd(std::nan(""))));
}

TEST(RoundToOdd, OthersTakeTheNeighbourWithASetLastBit) {
  EXPECT_EQ(round_to_odd((int64_t{1} << 53) + 1), 0x1p53 + 2);   // between an even one and an odd one
  EXPECT_EQ(round_to_odd((int64_t{1} << 54) + 7), 0x1p54 + 4);   // nearer to the even one
  EXPECT_EQ(round_to_odd(-(int64_t{1} << 54) - 7), -0x1p54 - 4);
  EXPECT_EQ(round_to_odd(INT64_MAX), 0x1p63 - 0x1p10);
  EXPECT_EQ(round_to_odd(UINT64_MAX), 0x1p64 - 0x1p11);
  EXPECT_EQ(round_to_odd(1.0 + 0x1p-40), 1.0F + 0x1p-23F);
  EXPECT_EQ(round_to_odd(-1.0 - 0x1p-40), -1.0F - 0x1p-23F);
  EXPECT_EQ(round_to_odd(0x1p-200), 0x1p-149F);
}

/// Integers are rounded to float32 in one step by the processor.
TEST(RoundToOdd, RoundingAgainIsRoundingOnce) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    // Few bits set far apart: numbers beside the midpoints of float32.
    const int high = static_cast<int>(random() % 40) + 24;
    const uint64_t number =
        (uint64_t{1} << high) + (random() % 4 << (high - 24)) + (random() % 3 - 1) * (random() % 2 + 1);
    EXPECT_EQ(static_cast<float>(round_to_odd(number)), static_cast<float>(number)) << number;
    const auto whole = static_cast<int64_t>(number);
    EXPECT_EQ(static_cast<float>(round_to_odd(whole)), static_cast<float>(whole)) << whole;
  }
}

}  // namespace
}  // namespace helve
