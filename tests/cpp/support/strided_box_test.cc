// Boxes of elements in memory, against counting addresses.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "helve/support/strided_box.h"

namespace helve {
namespace {

using Point = std::vector<int64_t>;

int64_t address(const Point& at, const Point& strides) {
  int64_t out = 0;
  for (size_t d = 0; d < at.size(); ++d) out += at[d] * strides[d];
  return out;
}

std::vector<Point> points(const Point& extents) {
  std::vector<Point> out = {{}};
  for (int64_t extent : extents) {
    std::vector<Point> longer;
    for (const Point& p : out) {
      for (int64_t i = 0; i < extent; ++i) {
        longer.push_back(p);
        longer.back().push_back(i);
      }
    }
    out = std::move(longer);
  }
  return out;
}

bool inside(const Point& at, const Point& extents) {
  for (size_t d = 0; d < at.size(); ++d) {
    if (at[d] < 0 || at[d] >= extents[d]) return false;
  }
  return at.size() == extents.size();
}

TEST(Separation, IsExactForSmallBoxes) {
  std::mt19937 random(1);
  auto number = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  int together = 0, nested = 0;
  for (int k = 0; k < 20000; ++k) {
    Point extents, strides;
    for (int64_t d = number(0, 4); d > 0; --d) {
      extents.push_back(number(0, 5));
      strides.push_back(number(-20, 20));
    }
    std::map<int64_t, int> at;
    bool apart = true;
    for (const Point& p : points(extents)) apart &= ++at[address(p, strides)] == 1;
    const Separation found = separation(extents, strides);
    ASSERT_EQ(found.kind, apart ? Separation::Apart : Separation::Together);
    if (strides_nest(extents, strides)) {
      ++nested;
      const bool empty = points(extents).empty();
      ASSERT_TRUE(apart || empty);
    }
    if (apart) continue;
    ++together;
    ASSERT_NE(found.first, found.second);
    ASSERT_TRUE(inside(found.first, extents) && inside(found.second, extents));
    ASSERT_EQ(address(found.first, strides), address(found.second, strides));
  }
  EXPECT_GT(together, 2000);
  EXPECT_GT(nested, 2000);
}

TEST(Separation, LargeNumbersDoNotOverflow) {
  constexpr int64_t kHuge = int64_t{1} << 62;
  EXPECT_EQ(separation(Point{1 << 20, 1 << 20}, Point{kHuge, kHuge}).kind, Separation::Together);
  EXPECT_EQ(separation(Point{1 << 20, 3}, Point{4, kHuge}).kind, Separation::Apart);
  EXPECT_EQ(separation(Point{int64_t{1} << 48, 2}, Point{1, int64_t{1} << 48}).kind, Separation::Apart);
  EXPECT_EQ(separation(Point{(int64_t{1} << 48) + 1, 2}, Point{1, int64_t{1} << 48}).kind, Separation::Together);
  EXPECT_EQ(separation(Point{2, 2}, Point{INT64_MIN, INT64_MIN}).kind, Separation::Together);
  constexpr int64_t kMany = int64_t{1} << 31;  // the search ends, with or without an answer
  EXPECT_NE(separation(Point{kMany, kMany}, Point{kMany + 1, kMany}).kind, Separation::Together);
}

TEST(Separation, Words) {
  EXPECT_EQ(fault_text(separation(Point{4, 3}, Point{2, 1})), "elements (1, 0) and (0, 2) have one address");
  EXPECT_EQ(fault_text(separation(Point{4}, Point{0})), "elements (1,) and (0,) have one address");
  EXPECT_EQ(fault_text({Separation::Open, {}, {}}), "its elements could not be shown to have addresses of their own");
}

TEST(ShareMemory, IsExactForSmallBoxes) {
  std::mt19937 random(2);
  auto number = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  std::vector<std::byte> memory(4096);
  for (int k = 0; k < 5000; ++k) {
    Point extents[2], strides[2];
    int64_t begins[2];
    std::map<int64_t, int> bytes[2];
    for (int side = 0; side < 2; ++side) {
      begins[side] = 2000 + number(-40, 40);
      for (int64_t d = number(0, 3); d > 0; --d) {
        extents[side].push_back(number(0, 4));
        strides[side].push_back(number(-30, 30));
      }
      for (const Point& p : points(extents[side])) {
        for (int64_t byte = 0; byte < 4; ++byte) bytes[side][begins[side] + address(p, strides[side]) + byte] = 1;
      }
    }
    bool expected = false;
    for (const auto& [at, one] : bytes[0]) expected |= bytes[1].contains(at);
    const StridedBox a{memory.data() + begins[0], extents[0], strides[0], 4};
    const StridedBox b{memory.data() + begins[1], extents[1], strides[1], 4};
    ASSERT_EQ(share_memory(a, b), expected);
  }
}

}  // namespace
}  // namespace helve
