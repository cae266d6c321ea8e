// Layouts as bit matrices: the XOR law by enumeration, round trips, and layouts as Triton states them.
#include "helve/layout/linear.h"

#include "oracle.h"

namespace helve {
namespace {

using oracle::Place;
using oracle::Places;

void exclusive_or(Place& a, const Point& b) {
  for (const auto& [axis, value] : b) {
    a[axis] ^= value;
    if (a[axis] == 0) a.erase(axis);
  }
}

/// The points of an index by the definition of LinearLayout.
Places points_of(const LinearLayout& linear, int64_t x) {
  Places result;
  for (uint64_t r = 0; r < (uint64_t{1} << linear.replica.size()); ++r) {
    Place place = oracle::place(linear.offset);
    for (size_t k = 0; k < linear.index.size(); ++k) {
      if ((x >> k) & 1) exclusive_or(place, linear.index[k]);
    }
    for (size_t k = 0; k < linear.replica.size(); ++k) {
      if ((r >> k) & 1) exclusive_or(place, linear.replica[k]);
    }
    result.insert(place);
  }
  return result;
}

/// Whether the map is an XOR map: checked on all pairs, from the points alone (replicas aside).
bool linear_by_enumeration(const Layout& layout) {
  Layout shard(layout.shard(), {}, layout.offset(), layout.swizzle());
  for (int64_t x = 0; x < layout.size(); ++x) {
    Place sum = *oracle::points(shard, 0).begin();
    for (int bit = 0; (int64_t{1} << bit) < layout.size(); ++bit) {
      if (!((x >> bit) & 1)) continue;
      exclusive_or(sum, *oracle::points(shard, int64_t{1} << bit).begin());
      exclusive_or(sum, *oracle::points(shard, 0).begin());
    }
    if (*oracle::points(shard, x).begin() != sum) return false;
  }
  return true;
}

Layout random_layout(oracle::RandomLayouts& random) {
  Iters shard;
  Iters replica;
  auto iter = [&] { return Iter{int64_t{1} << random.number(0, 2), int64_t{1} << random.number(0, 6), random.axis()}; };
  for (int64_t k = random.number(0, 3); k > 0; --k) shard.push_back(iter());
  for (int64_t k = random.number(0, 1); k > 0; --k) replica.push_back(iter());
  Point offset;
  if (random.number(0, 2) == 0) offset[random.axis()] = random.number(0, 300);
  Swizzle swizzle{};
  if (random.number(0, 1)) {
    int bits = static_cast<int>(random.number(1, 2));
    swizzle = {bits, static_cast<int>(random.number(0, 2)),
               static_cast<int>(bits + random.number(0, 2)) * (random.number(0, 1) ? 1 : -1)};
  }
  return Layout(shard, replica, offset, swizzle);
}

TEST(LayoutLinear, BitsGiveThePoints) {
  oracle::RandomLayouts random(21);
  int answered = 0;
  int refused = 0;
  for (int k = 0; k < 4000; ++k) {
    Layout layout = random_layout(random);
    try {
      LinearLayout linear = to_linear(layout);
      ++answered;
      for (int64_t x = 0; x < layout.size(); ++x)
        ASSERT_EQ(points_of(linear, x), oracle::points(layout, x)) << to_string(layout);
      Layout back = from_linear(linear);
      ASSERT_EQ(oracle::image(back), oracle::image(layout)) << to_string(layout) << " became " << to_string(back);
    } catch (const UnsupportedError& error) {
      ++refused;
      // Without replicas and offset the refusal is exact: the map is no XOR map.
      if (layout.replica().empty() && oracle::place(layout.offset()).empty()) {
        ASSERT_FALSE(linear_by_enumeration(layout)) << error.what();
      }
    }
  }
  EXPECT_GT(answered, 500);
  EXPECT_GT(refused, 500);
}

TEST(LayoutLinear, AnyStridesWithoutCarriesAreLinear) {
  auto steps = oracle::steps_on({0, 1, 2, 3, 4, 5, 8}, axes::m());
  for (int64_t size : {1, 2, 4, 6, 8}) {
    oracle::for_each_shard(size, steps, [&](const Iters& shard) {
      Layout layout(shard);
      bool power = (size & (size - 1)) == 0;
      if (power && linear_by_enumeration(layout)) {
        ASSERT_EQ(oracle::image(from_linear(to_linear(layout))), oracle::image(layout)) << to_string(layout);
      } else {
        ASSERT_THROW(to_linear(layout), UnsupportedError) << to_string(layout);
      }
    });
    if (HasFatalFailure()) return;
  }
}

TEST(LayoutLinear, ASwizzleIsFoundInTheBits) {
  Layout layout = parse_layout("S[(64, 64) : (64, 1)] ^ Swizzle(3, 3, 3)");
  LinearLayout linear = to_linear(layout);
  EXPECT_EQ(linear.index[6], (Point{{axes::m(), 64 + 8}}));
  Layout back = from_linear(linear);
  EXPECT_EQ(to_string(back), "S[4096 : 1] ^ Swizzle(3, 3, 3)");
  EXPECT_EQ(from_linear({{{{axes::m(), 1}}, {{axes::m(), 3}}}, {}, {}}).swizzle(), (Swizzle{1, 0, 1}));
}

TEST(LayoutLinear, ReplicasMayBeGivenByAnyBasis) {
  LinearLayout linear{{{{axes::m(), 5}}}, {{{axes::m(), 1}}, {{axes::m(), 3}}}, {{axes::m(), 9}}};
  EXPECT_EQ(to_string(from_linear(linear)), "S[2 : 4] + R[4 : 1] + 8");
}

TEST(LayoutLinear, AccumulatorOfAnMmaAsTritonStatesIt) {
  Axis reg = axes::reg();
  Axis lane = axes::laneid();
  Layout fragment({{2, 2, reg}, {8, 4, lane}, {4, 1, lane}, {2, 1, reg}});  // 16x8 over 32 lanes, m16n8
  LinearBases bases = to_bases(fragment, {16, 8});
  LinearBases expected = {{reg, {{0, 1}, {8, 0}}}, {lane, {{0, 2}, {0, 4}, {1, 0}, {2, 0}, {4, 0}}}};
  EXPECT_EQ(bases, expected);
  EXPECT_TRUE(from_bases(bases, {16, 8}).equivalent(fragment));
  bases[axes::warpid()] = {{0, 0}, {0, 0}};  // four warps hold the same
  Layout replicated = from_bases(bases, {16, 8});
  EXPECT_EQ(to_string(replicated), "S[(2, 32, 2) : (2@reg, 1@laneid, 1@reg)] + R[4 : 1@warpid]");
  EXPECT_EQ(to_bases(replicated, {16, 8}), bases);
}

TEST(LayoutLinear, BasesOfRandomLayoutsRoundTrip) {
  oracle::RandomLayouts random(22);
  int answered = 0;
  for (int k = 0; k < 4000; ++k) {
    Layout layout = random_layout(random);
    LinearBases bases;
    try {
      bases = to_bases(layout, {layout.size()});
    } catch (const UnsupportedError&) {
      continue;
    }
    ++answered;
    ASSERT_TRUE(layout.is_injective());
    for (int64_t x = 0; x < layout.size(); ++x) {
      for (const Place& place : oracle::points(layout, x)) {
        int64_t found = 0;
        for (const auto& [axis, value] : place) {
          for (size_t bit = 0; bit < bases.at(axis).size(); ++bit) {
            if ((value >> bit) & 1) found ^= bases.at(axis)[bit][0];
          }
        }
        ASSERT_EQ(found, x) << to_string(layout);
      }
    }
    ASSERT_EQ(oracle::image(from_bases(bases, {layout.size()})), oracle::image(layout)) << to_string(layout);
  }
  EXPECT_GT(answered, 200);
}

TEST(LayoutLinear, Refusals) {
  auto linear = [](const char* text) {
    return oracle::refusal<UnsupportedError>([&] { to_linear(parse_layout(text)); });
  };
  std::string help =
      "\nhelp: extents and strides of a layout over bits are powers of two, offsets touch no bit that a digit moves";
  EXPECT_EQ(linear("S[24 : 1]"),
            "error[HV0564]: S[24 : 1] is not linear in bits: iter 24:1 has no power of two as its extent" + help);
  EXPECT_EQ(
      linear("S[4 : 3]"),
      "error[HV0564]: S[4 : 3] is not linear in bits: bit 1 of iter 4:3 shares bit 1 of axis m with another" + help);
  EXPECT_EQ(linear("S[4 : -1]"),
            "error[HV0564]: S[4 : -1] is not linear in bits: bit 0 of iter 4:-1 is negative" + help);
  EXPECT_EQ(linear("S[4 : 1] + 3"),
            "error[HV0564]: S[4 : 1] + 3 is not linear in bits: the offset shares bit 0 of axis m with another" + help);
  auto bases = [](const char* text) {
    Layout layout = parse_layout(text);
    return oracle::refusal<UnsupportedError>([&] { to_bases(layout, {layout.size()}); });
  };
  EXPECT_EQ(bases("S[4 : 1] + 4"), "error[HV0564]: S[4 : 1] + 4 is not linear in bits: bases have no offset" + help);
  EXPECT_EQ(bases("S[4 : 2]"), "error[HV0564]: S[4 : 2] is not linear in bits: no element is at 1" + help);
  EXPECT_EQ(bases("S[(2, 2) : (0, 1)]"),
            "error[HV0564]: S[(2, 2) : (0, 1)] is not linear in bits: two elements share a place" + help);
  std::string one = "\nhelp: each index bit moves one bit of one axis, apart from one swizzle of the memory axis";
  Axis m = axes::m();
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { from_linear({{{{m, 1}, {axes::laneid(), 1}}}, {}, {}}); }),
            "error[HV0565]: these bits are not a layout: index bit 0 moves along laneid and m" + one);
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { from_linear({{{{m, 3}}, {{m, 3}}}, {}, {}}); }),
            "error[HV0565]: these bits are not a layout: index bit 1 shares bit 0 of axis m with another" + one);
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { from_bases({{m, {{1}}}}, {4}); }),
            "error[HV0565]: these bits are not a layout: element (2,) has no place" + one);
  EXPECT_THROW(from_bases({{m, {{4}}}}, {4}), BoundsError);
  EXPECT_THROW(from_bases({{m, {{1, 0}}}}, {4}), ShapeError);
  EXPECT_THROW(to_bases(parse_layout("S[24 : 1]"), {24}), UnsupportedError);
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { from_bases({{m, {{1}}}}, {3}); }),
            "error[HV0565]: these bits are not a layout: extent 3 of shape (3,) is no power of two" + one);
  EXPECT_EQ(to_linear(parse_layout("S[8 : 1] + R[(3, 1) : (0, 5)]")), to_linear(parse_layout("S[8 : 1]")));
}

}  // namespace
}  // namespace helve
