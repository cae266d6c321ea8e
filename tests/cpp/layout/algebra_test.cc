// Grouping, tiling, direct sums and address terms, against enumeration and by value.
#include "helve/layout/address_terms.h"
#include "oracle.h"

namespace helve {
namespace {

using oracle::Place;
using oracle::Places;

const Axis kLane = axes::laneid();
const Axis kWarp = axes::warpid();
const Axis kM = axes::m();

int64_t product(const Iters& iters) {
  int64_t result = 1;
  for (const Iter& iter : iters) result *= iter.extent;
  return result;
}

void check_group(const Layout& layout, const std::vector<int64_t>& shape) {
  GroupedLayout grouped = layout.group(shape);
  ASSERT_EQ(grouped.rank(), shape.size());
  ASSERT_EQ(grouped.separators[0], 0u);
  ASSERT_EQ(grouped.separators.back(), grouped.layout.shard().size());
  for (size_t d = 0; d < shape.size(); ++d) ASSERT_EQ(product(grouped.block(d)), shape[d]) << to_string(layout);
  ASSERT_EQ(oracle::image(grouped.layout), oracle::image(layout)) << to_string(layout);
}

TEST(LayoutGroup, SucceedsExactlyWhereBlocksExist) {
  auto steps = oracle::steps_on({0, 1, 2, 3, 4, 6, 8, 12}, kM);
  int refused = 0;
  for (int64_t size : {1, 4, 6, 8, 9, 12}) {
    oracle::for_each_shard(size, steps, [&](const Iters& shard) {
      Layout layout(shard);
      auto f = oracle::displacements(layout);
      for (int64_t outer = 1; outer <= size; ++outer) {
        if (size % outer != 0) continue;
        if (oracle::groupable(f, outer)) {
          check_group(layout, {outer, size / outer});
        } else {
          ++refused;
          ASSERT_THROW(layout.group({outer, size / outer}), DivisibilityError) << to_string(layout) << " by " << outer;
        }
      }
    });
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(refused, 0);
}

TEST(LayoutGroup, IsMinimalAndKeepsReplicasAndOffset) {
  Layout layout({{2, 32, kM}, {4, 8, kM}, {2, 1, kLane}, {8, 1, kM}}, {{2, 4, kWarp}}, {{kWarp, 5}}, Swizzle{2, 2, 2});
  GroupedLayout grouped = layout.group({1, 8, 1, 4, 4});
  EXPECT_EQ(to_string(grouped.layout),
            "S[(8, 2, 2, 4) : (8, 1@laneid, 4, 1)] + R[2 : 4@warpid] + 5@warpid ^ Swizzle(2, 2, 2)");
  EXPECT_EQ(grouped.separators, (std::vector<size_t>{0, 0, 1, 1, 3, 4}));
}

TEST(LayoutGroup, SeveralShapesAtOnce) {
  Layout layout({{24, 1, kM}});
  GroupedMany many = layout.group_many({{4, 6}, {24}, {2, 1, 12}});
  EXPECT_EQ(to_string(many.layout), "S[(2, 2, 6) : (12, 6, 1)]");
  EXPECT_EQ(many.separators, (std::vector<Separators>{{0, 2, 3}, {0, 3}, {0, 1, 1, 3}}));
  EXPECT_EQ(oracle::refusal<DivisibilityError>([&] { layout.group_many({{4, 6}, {6, 4}}); }),
            "error[HV0521]: shapes (4, 6), (6, 4) have no common refinement: of the products 4 and 6 of last "
            "dimensions neither divides the other\n"
            "help: choose shapes whose products of last dimensions divide one another");
  EXPECT_EQ(layout.group_many({}).layout, layout);
}

/// The places of x and y on the interleaved domain, by the definition of `tile` (or of the direct sum).
void check_product(const Layout& a, const std::vector<int64_t>& a_shape, const Layout& b,
                   const std::vector<int64_t>& b_shape, bool scaled) {
  Layout result = scaled ? tile(a, a_shape, b, b_shape) : direct_sum(a, a_shape, b, b_shape);
  std::vector<int64_t> shape;
  for (size_t d = 0; d < a_shape.size(); ++d) {
    shape.push_back(a_shape[d]);
    shape.push_back(b_shape[d]);
  }
  oracle::Image image_b = oracle::image(b);
  for (int64_t x = 0; x < a.size(); ++x) {
    for (int64_t y = 0; y < b.size(); ++y) {
      std::vector<int64_t> cx = unflatten(x, a_shape);
      std::vector<int64_t> cy = unflatten(y, b_shape);
      std::vector<int64_t> coordinate;
      for (size_t d = 0; d < cx.size(); ++d) {
        coordinate.push_back(cx[d]);
        coordinate.push_back(cy[d]);
      }
      Places expected;
      for (Place p : oracle::points(a, x)) {
        for (auto& [axis, value] : p) value *= scaled ? oracle::span(image_b, axis) : 1;
        for (const Place& q : image_b[y]) expected.insert(oracle::combine(q, 1, p));
      }
      ASSERT_EQ(oracle::points(result, flatten(coordinate, shape)), expected)
          << to_string(a) << " and " << to_string(b) << ": " << to_string(result);
    }
  }
}

TEST(LayoutTile, SmallLayoutsExhaustively) {
  std::vector<std::pair<int64_t, Axis>> steps = {{0, kM}, {1, kM}, {-2, kM}, {3, kM}, {1, kLane}};
  std::vector<Layout> all;
  for (int64_t size : {1, 2, 4}) {
    oracle::for_each_shard(size, steps, [&](const Iters& shard) { all.push_back(Layout(shard)); });
  }
  for (const Layout& a : all) {
    for (const Layout& b : all) {
      for (bool scaled : {true, false}) {
        check_product(a, {a.size()}, b, {b.size()}, scaled);
        if (a.size() == 4 && b.size() == 4 && scaled) check_product(a, {2, 2}, b, {2, 2}, true);
      }
      if (HasFatalFailure()) return;
    }
  }
}

TEST(LayoutTile, RandomLayoutsWithReplicasOffsetsAndSwizzles) {
  oracle::RandomLayouts random(3);
  int swizzled = 0, idle = 0;
  for (int k = 0; k < 3000; ++k) {
    Layout a = random.layout(2, 3, false);
    Layout b = random.layout(3, 4, true);
    if (b.size() > 24) continue;
    const Swizzle swizzle = b.canonicalize().swizzle();  // none where it moves nothing: b is then like any layout
    bool exact = b.span(kM) % swizzle.period() == 0;
    if (!exact) {
      ASSERT_THROW(tile(a, {a.size()}, b, {b.size()}), UnsupportedError);
      continue;
    }
    swizzled += !swizzle.identity();
    idle += swizzle != b.swizzle();
    check_product(a, {a.size()}, b, {b.size()}, true);
    if (swizzle.identity()) check_product(a, {a.size()}, b, {b.size()}, false);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(swizzled, 0);
  EXPECT_GT(idle, 0);
}

TEST(LayoutTile, ExampleOfThePaper) {
  Layout t = tile(Layout({{2, 3, kM}, {3, 1, kM}}), {2, 3}, Layout({{8, 8, kM}, {8, 1, kM}}), {8, 8});
  EXPECT_EQ(to_string(t), "S[(2, 8, 3, 8) : (192, 8, 64, 1)]");
}

TEST(LayoutTile, TheOutersReplicasAndOffsetAreScaled) {
  Layout outer({{2, 1, kM}}, {{2, 2, kM}}, {{kM, 1}});
  Layout t = tile(outer, {2}, Layout({{4, 1, kM}}), {4});
  EXPECT_EQ(to_string(t), "S[(2, 4) : (4, 1)] + R[2 : 8] + 4");
}

TEST(LayoutTile, TheInnersReplicasCountInItsSpan) {
  Layout inner({{2, 1, kM}}, {{2, 1, kLane}});
  Layout t = tile(Layout({{2, 1, kLane}}), {2}, inner, {2});
  EXPECT_EQ(to_string(t), "S[(2, 2) : (2@laneid, 1)] + R[2 : 1@laneid]");
}

TEST(LayoutTile, TheInnersOffsetDoesNot) {
  Layout t = tile(Layout({{2, 1, kM}}), {2}, Layout({{4, 1, kM}}, {}, {{kM, 100}}), {4});
  EXPECT_EQ(to_string(t), "S[(2, 4) : (4, 1)] + 100");
}

TEST(LayoutDirectSum, StridedAtomsOfThePaper) {
  Layout left({{2, 8, kM}, {2, 2, kM}});
  Layout right({{2, 4, kM}, {2, 1, kM}});
  EXPECT_EQ(right.span(kM), 6);
  Layout sum = direct_sum(left, {2, 2}, right, {2, 2});
  EXPECT_EQ(to_string(sum.canonicalize()), "S[16 : 1]");
}

TEST(LayoutTile, Refusals) {
  Layout four({{4, 1, kM}});
  Layout swizzled({{32, 1, kM}}, {}, {}, Swizzle{2, 2, 2});
  EXPECT_EQ(oracle::refusal<ShapeError>([&] { tile(four, {4}, four, {2, 2}); }),
            "error[HV0513]: tile: shape (4,) and shape (2, 2) have different ranks\n"
            "help: give one entry for each dimension");
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { tile(swizzled, {32}, four, {4}); }),
            "error[HV0552]: tile: the outer operand S[32 : 1] ^ Swizzle(2, 2, 2) is swizzled\n"
            "help: swizzle the result instead");
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { direct_sum(four, {4}, swizzled, {32}); }),
            "error[HV0552]: direct_sum: the right operand S[32 : 1] ^ Swizzle(2, 2, 2) is swizzled\n"
            "help: swizzle the result instead");
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { tile(four, {4}, swizzled, {32}); }),
            "error[HV0553]: tile: the inner operand spans 32 on the memory axis, its swizzle repeats every 64\n"
            "help: a swizzled inner operand spans a multiple of the swizzle's period");
  EXPECT_EQ(oracle::refusal<DivisibilityError>([&] { Layout({{4, 9, kM}, {9, 1, kLane}}).group({6, 6}); }),
            "error[HV0520]: shape (6, 6) does not group S[(4, 9) : (9, 1@laneid)]: dimension 0 needs 6 from iter 4:9, "
            "neither divides the other\n"
            "help: choose extents whose products fall between iters or on divisors of an iter");
  EXPECT_EQ(oracle::refusal<ShapeError>([&] { four.group({2, 3}); }),
            "error[HV0511]: shape (2, 3) has 6 elements, the layout has 4\n"
            "help: a layout admits every shape with as many elements as its shard");
}

TEST(LayoutAddressTerms, GiveTheAddress) {
  oracle::RandomLayouts random(4);
  std::vector<std::pair<Layout, std::vector<int64_t>>> cases;
  for (int k = 0; k < 500; ++k) {
    Layout layout = random.layout(4, 4, false);
    cases.push_back({Layout(layout.shard(), {}, layout.offset()), {layout.size()}});
    std::vector<int64_t> extents;
    for (const Iter& iter : layout.shard()) extents.push_back(iter.extent);
    cases.push_back({Layout(layout.shard()), extents});
  }
  for (const auto& [layout, domain] : cases) {
    auto terms = address_terms(layout, domain);
    for (int64_t x = 0; x < layout.size(); ++x) {
      auto index = unflatten(x, domain);
      Place sum = oracle::place(layout.offset());
      for (const AddressTerm& term : terms) {
        ASSERT_NE(term.stride, 0);
        int64_t digit = index[term.dim] / term.divisor % term.extent;
        ASSERT_TRUE(!term.outermost || digit == index[term.dim] / term.divisor) << to_string(layout);
        sum = oracle::combine(sum, 1, {{term.axis, digit * term.stride}});
      }
      ASSERT_EQ(Places{sum}, oracle::points(layout, x)) << to_string(layout);
    }
  }
  const Layout blocks({{4, 4096, kM}, {32, 32, kM}, {4, 1024, kM}, {32, 1, kM}});
  EXPECT_EQ(address_terms(blocks, {128, 128}), (std::vector<AddressTerm>{{0, 32, 4, 4096, kM, true},
                                                                         {0, 1, 32, 32, kM, false},
                                                                         {1, 32, 4, 1024, kM, true},
                                                                         {1, 1, 32, 1, kM, false}}));
}

}  // namespace
}  // namespace helve
