// Rounding and bit patterns against brute force: the nearest value is searched among all values of the format.
#include "helve/ir/expr/rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "helve/ir/expr/build.h"

namespace helve {
namespace {

const std::vector<DType> kSmall = {
    {TypeCode::Float8E4M3, 8}, {TypeCode::Float8E5M2, 8}, {TypeCode::Float, 16}, {TypeCode::BFloat, 16}};

struct Value {
  double value;
  uint64_t bits;
};

/// All finite values that are not negative, ascending, by pattern.
std::vector<Value> magnitudes(DType dtype) {
  std::vector<Value> out;
  for (uint64_t bits = 0; bits < uint64_t{1} << (dtype.bits - 1); ++bits) {
    const double v = float_value(bits, dtype);
    if (std::isfinite(v)) out.push_back({v, bits});
  }
  return out;
}

TEST(Rounding, PatternsAreOrderedAndComplete) {
  const std::vector<size_t> finite = {127, 124, 31744, 32640};  // counts of patterns below infinity and NaN
  const std::vector<double> greatest = {448, 57344, 65504, 3.3895313892515355e38};
  const std::vector<double> least = {0x1p-9, 0x1p-16, 0x1p-24, 0x1p-133};
  for (size_t t = 0; t < kSmall.size(); ++t) {
    std::vector<Value> all = magnitudes(kSmall[t]);
    ASSERT_EQ(all.size(), finite[t]) << to_string(kSmall[t]);
    EXPECT_TRUE(std::is_sorted(all.begin(), all.end(), [](Value a, Value b) { return a.value <= b.value; }));
    EXPECT_EQ(all.back().value, greatest[t]);
    EXPECT_EQ(all[1].value, least[t]);
  }
}

TEST(Rounding, EveryPatternReturns) {
  for (DType dtype : kSmall) {
    for (uint64_t bits = 0; bits < uint64_t{1} << dtype.bits; ++bits) {
      const double v = float_value(bits, dtype);
      if (std::isnan(v)) {
        EXPECT_TRUE(std::isnan(float_value(float_bits(v, dtype), dtype)));
        EXPECT_TRUE(std::isnan(round_to(v, dtype)));
      } else {
        ASSERT_EQ(float_bits(v, dtype), bits) << to_string(dtype);
        ASSERT_EQ(std::bit_cast<uint64_t>(round_to(v, dtype)), std::bit_cast<uint64_t>(v));
      }
    }
  }
}

/// Between neighbours: the nearer one, at the midpoint the one with the even pattern.
TEST(Rounding, NearestWithTiesToEvenBetweenAllNeighbours) {
  for (DType dtype : kSmall) {
    std::vector<Value> all = magnitudes(dtype);
    for (size_t n = 0; n + 1 < all.size(); ++n) {
      const double lo = all[n].value, hi = all[n + 1].value, middle = lo + (hi - lo) / 2;
      const double even = all[n].bits % 2 == 0 ? lo : hi;
      const double below = std::nextafter(middle, 0.0), above = std::nextafter(middle, hi);
      for (double sign : {1.0, -1.0}) {
        ASSERT_EQ(round_to(sign * below, dtype), sign * lo) << to_string(dtype) << " " << lo;
        ASSERT_EQ(round_to(sign * middle, dtype), sign * even) << to_string(dtype) << " " << lo;
        ASSERT_EQ(round_to(sign * above, dtype), sign * hi) << to_string(dtype) << " " << lo;
      }
    }
  }
}

TEST(Rounding, Overflow) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (DType dtype : kSmall) {
    std::vector<Value> all = magnitudes(dtype);
    const double top = all.back().value, step = top - all[all.size() - 2].value;
    const bool infinite = dtype.code != TypeCode::Float8E4M3;
    EXPECT_EQ(round_to(std::nextafter(top + step / 2, 0.0), dtype), top) << to_string(dtype);
    for (double v : {top + step, infinity}) {
      EXPECT_EQ(infinite, round_to(v, dtype) == infinity) << to_string(dtype) << " " << v;
      EXPECT_EQ(infinite, round_to(-v, dtype) == -infinity) << to_string(dtype) << " " << v;
      EXPECT_EQ(!infinite, std::isnan(round_to(v, dtype))) << to_string(dtype) << " " << v;
    }
    // The midpoint above the greatest value goes to the even side: up where the greatest pattern is odd, as it is where
    // there is an infinity; down for float8_e4m3, whose 448 is even.
    EXPECT_EQ(round_to(top + step / 2, dtype), infinite ? infinity : top) << to_string(dtype);
    EXPECT_EQ(extreme_float(dtype, true), infinite ? -infinity : -448.0);
  }
}

TEST(Rounding, Float16AndFloat32AgreeWithTheMachine) {
  std::mt19937_64 random(3);
  const DType bf16{TypeCode::BFloat, 16};
  for (int n = 0; n < 100000; ++n) {
    const float v = std::bit_cast<float>(static_cast<uint32_t>(random()));
    if (!std::isfinite(v)) continue;
    // bfloat16 is the upper half of float32, rounded to nearest even by integer arithmetic.
    uint32_t bits = std::bit_cast<uint32_t>(v);
    bits += 0x7fff + (bits >> 16 & 1);
    EXPECT_EQ(float_bits(round_to(v, bf16), bf16), bits >> 16);
    const double d = std::bit_cast<double>(random());
    if (std::isfinite(d)) {
      EXPECT_EQ(round_to(d, kFloat32), static_cast<double>(static_cast<float>(d)));
    }
  }
}

/// Integers around every midpoint of neighbours, and beyond what float64 holds: nearest, ties to even.
TEST(Rounding, IntegersRoundOnce) {
  for (DType dtype : kSmall) {
    const std::vector<Value> all = magnitudes(dtype);
    for (size_t n = 0; n + 1 < all.size(); ++n) {
      const long double lo = all[n].value, hi = all[n + 1].value, middle = lo + (hi - lo) / 2;
      if (middle < 2 || middle >= 0x1p64L || middle != std::floor(middle)) continue;
      const auto tie = static_cast<uint64_t>(middle);
      const double even = static_cast<double>(all[n].bits % 2 == 0 ? lo : hi);
      for (uint64_t step : {uint64_t{1}, uint64_t{1} << 10, uint64_t{1} << 11}) {
        if (static_cast<long double>(step) > (hi - lo) / 2) continue;
        ASSERT_EQ(float_of(tie - step, dtype), static_cast<double>(lo)) << tie;
        ASSERT_EQ(float_of(tie + step, dtype), static_cast<double>(hi)) << tie;
        if (tie >= uint64_t{1} << 63) continue;
        ASSERT_EQ(float_of(-static_cast<int64_t>(tie - step), dtype), -static_cast<double>(lo)) << tie;
        ASSERT_EQ(float_of(-static_cast<int64_t>(tie + step), dtype), -static_cast<double>(hi)) << tie;
      }
      ASSERT_EQ(float_of(tie, dtype), even) << tie;
    }
  }
  const int64_t above = (int64_t{1} << 62) + (int64_t{1} << 38) + 1;  // a tie in float32, once it is a float64
  EXPECT_EQ(float_of(above, kFloat32), 0x1p62 + 0x1p39);
  EXPECT_EQ(float_of(~uint64_t{0}, kFloat64), 0x1p64);
}

TEST(Rounding, FourBitsHoldNumbersOnly) {
  const DType t = *parse_dtype("float4_e2m1fn");
  const double values[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
  for (uint64_t bits = 0; bits < 16; ++bits) {
    const double value = (bits & 8 ? -1 : 1) * values[bits & 7];
    EXPECT_EQ(float_value(bits, t), value);
    EXPECT_EQ(std::signbit(float_value(bits, t)), (bits & 8) != 0);
    EXPECT_EQ(round_to(value, t), value);
    EXPECT_EQ(float_bits(value, t), bits);
  }
  const std::pair<double, double> rounded[] = {{0.25, 0}, {0.26, 0.5}, {0.75, 1}, {1.25, 1}, {1.75, 2}, {2.5, 2},
                                               {3.5, 4},  {5, 4},      {5.1, 6},  {7, 6},    {1e9, 6},  {-1e9, -6}};
  for (const auto& [value, wanted] : rounded) EXPECT_EQ(round_to(value, t), wanted) << value;
  EXPECT_EQ(round_to(std::numeric_limits<double>::infinity(), t), 6);
  EXPECT_EQ(float_bits(round_to(std::numeric_limits<double>::quiet_NaN(), t), t), 8U);
  EXPECT_EQ(extreme_float(t, true), -6);
}

TEST(Rounding, IntegersWrap) {
  for (const char* name : {"int4", "int8", "int16", "int32", "uint8", "uint16", "uint32"}) {
    const DType dtype = *parse_dtype(name);
    const int64_t low = extreme_int(dtype, true), high = extreme_int(dtype, false), period = int64_t{1} << dtype.bits;
    EXPECT_EQ(high - low + 1, period) << name;
    for (int64_t v : {low, low + 1, int64_t{0}, high - 1, high}) {
      for (int64_t turns : {-3, -1, 0, 1, 2}) EXPECT_EQ(wrap_to(v + turns * period, dtype), v) << name;
    }
    EXPECT_EQ(wrap_to(high + 1, dtype), low) << name;
  }
  const int64_t most = std::numeric_limits<int64_t>::max();
  EXPECT_EQ(extreme_int(kInt64, false), most);
  EXPECT_EQ(extreme_int(kInt64, true), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(extreme_int({TypeCode::UInt, 64}, false), -1);
  EXPECT_EQ(wrap_to(most, kIndex), most);
  EXPECT_EQ(wrap_to(2, kBool), 1);
}

}  // namespace
}  // namespace helve
