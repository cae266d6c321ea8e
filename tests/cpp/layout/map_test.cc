// The map, its span, inverse, injectivity, canonical form and equality, against enumeration.
#include "oracle.h"

namespace helve {
namespace {

using oracle::Image;
using oracle::Place;

const Axis kLane = axes::laneid();
const Axis kWarp = axes::warpid();
const Axis kM = axes::m();
const Axis kGpu = axes::gpuid();

/// Every law that needs one layout only.
void check_layout(const Layout& layout) {
  Image image = oracle::image(layout);
  ASSERT_EQ(layout.size(), static_cast<int64_t>(image.size()));
  for (int64_t x = 0; x < layout.size(); ++x) ASSERT_EQ(oracle::applied(layout, x), image[x]) << to_string(layout);
  for (Axis axis : {kM, kLane, axes::x(), kGpu}) {
    ASSERT_EQ(layout.span(axis), oracle::span(image, axis)) << to_string(layout);
  }
  bool injective = oracle::injective(image);
  auto collision = layout.find_collision();
  ASSERT_EQ(!collision.has_value(), injective) << to_string(layout);
  if (collision) {
    ASSERT_LT(collision->first, collision->second) << to_string(layout);
    ASSERT_TRUE(image[collision->first].count(oracle::place(collision->point))) << to_string(layout);
    ASSERT_TRUE(image[collision->second].count(oracle::place(collision->point))) << to_string(layout);
    ASSERT_THROW(layout.inverse(collision->point), InjectivityError);
  } else {
    oracle::Places all;
    for (int64_t x = 0; x < layout.size(); ++x) {
      for (const Place& p : image[x]) {
        ASSERT_EQ(layout.inverse(p), x) << to_string(layout);
        all.insert(p);
      }
    }
    for (Axis axis : layout.axes()) {  // neighbours of the image are outside it, or in it
      for (const Place& p : image[0]) {
        Place other = oracle::combine(p, 1, {{axis, 1}});
        ASSERT_EQ(layout.inverse(other).has_value(), all.count(other) == 1) << to_string(layout);
      }
    }
  }
  Layout canonical = layout.canonicalize();
  ASSERT_EQ(oracle::image(canonical), image) << to_string(layout) << " -> " << to_string(canonical);
  ASSERT_EQ(canonical.canonicalize(), canonical) << to_string(layout);
  ASSERT_TRUE(layout.equivalent(canonical)) << to_string(layout);
  ASSERT_EQ(parse_layout(to_string(layout)), layout) << to_string(layout);
}

TEST(LayoutMap, EveryLayoutOfOneAxisUpToTwentyFour) {
  // Equal maps have equal canonical forms, different maps different ones.
  std::map<std::vector<int64_t>, Layout> canonical;
  std::map<std::string, std::vector<int64_t>> maps;
  int64_t total = 0;
  auto steps = oracle::steps_on({0, 1, 2, 3, 4, 5, 6, 7, 8, 16}, kM);
  for (int64_t size = 1; size <= 24; ++size) {
    oracle::for_each_shard(size, steps, [&](const Iters& shard) {
      Layout layout(shard);
      ++total;
      check_layout(layout);
      std::vector<int64_t> map;
      for (int64_t x = 0; x < size; ++x) {
        int64_t value = 0;
        int64_t rest = x;
        for (size_t k = shard.size(); k-- > 0; rest /= shard[k].extent) {
          value += rest % shard[k].extent * shard[k].stride;
        }
        map.push_back(value);
      }
      ASSERT_EQ(layout.span(kM), *std::max_element(map.begin(), map.end()) + 1);
      std::set<int64_t> distinct(map.begin(), map.end());
      ASSERT_EQ(layout.is_injective(), distinct.size() == map.size()) << to_string(layout);
      Layout form = layout.canonicalize();
      ASSERT_EQ(canonical.emplace(map, form).first->second, form) << to_string(layout);
      ASSERT_EQ(maps.emplace(to_string(form), map).first->second, map) << to_string(layout);
    });
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(total, 50000);
}

TEST(LayoutMap, EveryLayoutOfTwoAxesWithReplicas) {
  std::vector<std::pair<int64_t, Axis>> steps = {{0, kM},    {1, kM},    {-2, kM},  {3, kM},
                                                 {0, kLane}, {1, kLane}, {2, kLane}};
  std::vector<Iters> replicas = {
      {}, {{2, 4, kLane}}, {{3, -1, kM}}, {{2, 2, kM}, {2, 3, kM}}, {{2, 0, kM}, {2, 1, kLane}}};
  for (int64_t size : {1, 2, 4, 6, 8}) {
    oracle::for_each_shard(size, steps, [&](const Iters& shard) {
      for (const Iters& replica : replicas) {
        check_layout(Layout(shard, replica, {{kLane, 1}, {kM, -2}}));
      }
    });
    if (HasFatalFailure()) return;
  }
}

TEST(LayoutMap, ReplicaSetsAreComparedAsSets) {
  Iters iters;
  for (int64_t extent : {1, 2, 3, 4}) {
    for (int64_t stride : {-2, 0, 1, 2, 3, 4, 5}) iters.push_back({extent, stride, kM});
  }
  std::map<Image, Layout> known;
  std::vector<Layout> all;
  int64_t without_unique_form = 0;
  for (const Iter& a : iters) {
    for (const Iter& b : iters) {
      for (const Iter& c : iters) {
        if (!oracle::long_tests() && c.extent > 2) continue;
        Layout layout({}, {a, b, c});
        Image image = oracle::image(layout);
        const Layout& first = known.emplace(image, layout).first->second;
        ASSERT_TRUE(layout.equivalent(first)) << to_string(layout) << " and " << to_string(first);
        without_unique_form += layout.canonicalize() != first.canonicalize();
        ASSERT_EQ(oracle::image(layout.canonicalize()), image) << to_string(layout);
      }
    }
  }
  EXPECT_GT(without_unique_form, 0);
  for (const auto& [image, layout] : known) {
    for (const auto& [other_image, other] : known) {
      ASSERT_EQ(layout.equivalent(other), &layout == &other) << to_string(layout) << " and " << to_string(other);
    }
  }
}

TEST(LayoutMap, RandomLayouts) {
  oracle::RandomLayouts random(1);
  for (int k = 0; k < (oracle::long_tests() ? 200000 : 10000); ++k) {
    check_layout(random.layout(4, 4, true));
    if (HasFatalFailure()) return;
  }
}

TEST(LayoutMap, EqualityOfRandomPairsUnderSwizzles) {
  oracle::RandomLayouts random(2);
  int equal = 0;
  for (int k = 0; k < 4000; ++k) {
    Layout a = random.layout(2, 4, true);
    Layout b(a.shard(), a.replica(), a.offset(), random.layout(0, 1, true).swizzle());
    ASSERT_EQ(a.equivalent(b), oracle::image(a) == oracle::image(b)) << to_string(a) << " and " << to_string(b);
    equal += a.swizzle() != b.swizzle() && a.equivalent(b);
    Layout c = random.layout(2, 3, false);
    ASSERT_EQ(a.equivalent(c), oracle::image(a) == oracle::image(c)) << to_string(a) << " and " << to_string(c);
  }
  EXPECT_GT(equal, 0);
}

TEST(LayoutMap, TensorCoreTileOfThePaper) {
  Layout layout({{8, 4, kLane}, {2, 1, kWarp}, {4, 1, kLane}, {2, 1, axes::reg()}}, {{2, 4, kWarp}}, {{kWarp, 5}});
  EXPECT_EQ(layout.size(), 128);
  EXPECT_EQ(layout.size(kLane), 32);
  EXPECT_EQ(layout.span(kWarp), 6);
  auto at = layout.apply({3, 13}, {8, 16});  // lane 3 * 4 + 2, register 1, second of two warps
  ASSERT_EQ(at.size(), 2u);
  EXPECT_EQ(at[0], (Point{{kLane, 14}, {kWarp, 6}, {axes::reg(), 1}}));
  EXPECT_EQ(at[1], (Point{{kLane, 14}, {kWarp, 10}, {axes::reg(), 1}}));
  EXPECT_EQ(layout.inverse(at[1], {8, 16}), (std::vector<int64_t>{3, 13}));
  EXPECT_EQ(layout.inverse({{kLane, 14}, {kWarp, 7}, {axes::reg(), 1}}, {8, 16}), std::nullopt);
  EXPECT_EQ(layout.inverse({{kLane, 14}, {kWarp, 6}, {axes::reg(), 1}, {kGpu, 1}}), std::nullopt);
}

TEST(LayoutMap, ShardedMatricesOfThePaper) {
  Layout sharded({{2, 1, kGpu}, {32, 128, kM}, {2, 2, kGpu}, {64, 1, kM}});
  EXPECT_EQ(sharded.span(kM), 4032);
  EXPECT_EQ(sharded.apply({40, 70}, {64, 128})[0], (Point{{kGpu, 3}, {kM, 8 * 128 + 6}}));
  Layout replicated({{2, 1, kGpu}, {32, 128, kM}, {128, 1, kM}}, {{2, 2, kGpu}});
  EXPECT_EQ(replicated.canonicalize().shard(), (Iters{{2, 1, kGpu}, {4096, 1, kM}}));
  EXPECT_EQ(replicated.apply(64 * 128 - 1), (std::vector<Point>{{{kGpu, 1}, {kM, 4095}}, {{kGpu, 3}, {kM, 4095}}}));
}

TEST(LayoutMap, TwoDimensionalMemoriesOfThePaper) {
  Layout trainium({{2, 512, axes::F()}, {128, 1, axes::P()}, {512, 1, axes::F()}});
  EXPECT_EQ(trainium.span(axes::F()), 1024);
  EXPECT_EQ(trainium.span(axes::P()), 128);
  Layout tmem({{2, 112, axes::TCol()}, {128, 1, axes::TLane()}, {112, 1, axes::TCol()}});
  EXPECT_EQ(tmem.span(axes::TCol()), 224);
  EXPECT_TRUE(tmem.is_injective());
}

TEST(LayoutMap, ColumnMajorIsNotBitLinear) {
  Layout column({{24, 1, kM}, {24, 24, kM}});
  auto address = [&](int64_t x) { return column.apply(x)[0].at(kM); };
  EXPECT_EQ(address(3), 72);
  EXPECT_NE(address(1) ^ address(2), address(3));
}

TEST(LayoutMap, AliasedReplicasAreCountedOnce) {  // E_R is 8, the set has 6 points
  Layout layout({}, {{4, 1, kM}, {2, 2, kM}});
  EXPECT_EQ(layout.apply(0).size(), 6u);
  EXPECT_EQ(layout.canonicalize().replica(), (Iters{{6, 1, kM}}));
}

TEST(LayoutMap, CanonicalReplicasMergeAtTheWeakBound) {
  EXPECT_EQ(Layout({}, {{2, 1, kM}, {2, 2, kM}}).canonicalize().replica(), (Iters{{4, 1, kM}}));
  EXPECT_EQ(Layout({}, {{2, 2, kM}, {2, 3, kM}}).canonicalize().replica(), (Iters{{2, 2, kM}, {2, 3, kM}}));
  Layout negative({}, {{3, -2, kM}}, {{kM, 4}});
  EXPECT_EQ(to_string(negative.canonicalize()), "S[() : ()] + R[3 : 2]");
}

TEST(LayoutMap, ReplicaOrderDoesNotMatter) {
  Layout a({}, {{2, 4, kWarp}, {2, 1, kLane}});
  Layout b({}, {{2, 1, kLane}, {2, 4, kWarp}});
  EXPECT_NE(a, b);
  EXPECT_TRUE(a.equivalent(b));
  EXPECT_EQ(a.canonicalize(), b.canonicalize());
  EXPECT_EQ(a.canonicalize().hash(), b.canonicalize().hash());
}

TEST(LayoutMap, SpanIgnoresOffsetsAndSigns) {
  EXPECT_EQ(Layout({{4, 1, kM}}, {}, {{kM, 100}}).span(kM), 4);
  EXPECT_EQ(Layout({{4, -3, kM}}).span(kM), 10);
  EXPECT_EQ(Layout({{4, 1, kM}}).span(kLane), 1);
}

TEST(LayoutMap, StrideZeroInTheShardIsAMapButNotInjective) {
  Layout broadcast({{2, 0, kM}, {3, 1, kM}});
  EXPECT_EQ(broadcast.apply(4), broadcast.apply(1));
  auto collision = broadcast.find_collision();
  ASSERT_TRUE(collision.has_value());
  EXPECT_EQ(collision->first, 0);
  EXPECT_EQ(collision->second, 3);
  EXPECT_TRUE(Layout({{2, 0, kLane}}).equivalent(Layout({{2, 0, kM}})));
}

TEST(LayoutMap, CanonicalFormDependsOnNothingButTheLayout) {  // thread axes never fuse by themselves
  Layout threads({{4, 1, kWarp}, {32, 1, kLane}});
  EXPECT_EQ(threads.canonicalize(), threads);
}

TEST(LayoutMap, SpanOfASwizzleIsThatOfItsImage) {
  Layout one({{4, 1, kM}}, {}, {{kM, 4}}, Swizzle{2, 0, 2});  // 4 5 6 7 -> 5 4 7 6
  EXPECT_EQ(one.span(kM), 4);
  Layout two({{2, 5, kM}}, {}, {}, Swizzle{2, 0, 2});  // 0 5 -> 0 4
  EXPECT_EQ(two.span(kM), 5);
  Layout large({{int64_t{1} << 40, 64, kM}, {64, 1, kM}}, {}, {}, Swizzle{3, 4, 3});
  EXPECT_EQ(large.span(kM), int64_t{1} << 46);
}

TEST(LayoutMap, ASwizzleThatMovesNothingIsNoPartOfTheCanonicalForm) {
  Layout small({{16, 1, kM}}, {}, {}, Swizzle{2, 2, 2});
  EXPECT_EQ(small.canonicalize(), Layout({{16, 1, kM}}));
  Layout large({{32, 1, kM}}, {}, {}, Swizzle{2, 2, 2});
  EXPECT_EQ(large.canonicalize(), large);
}

TEST(LayoutMap, OneElement) {
  Layout point;
  EXPECT_EQ(point.size(), 1);
  EXPECT_EQ(point.apply(0), std::vector<Point>{Point{}});
  EXPECT_EQ(point.apply({}, {}), std::vector<Point>{Point{}});
  EXPECT_EQ(point.apply({0, 0}, {1, 1}), std::vector<Point>{Point{}});
  EXPECT_EQ(Layout({{1, 7, kLane}}).canonicalize(), point);
  EXPECT_EQ(point.inverse(Point{}), 0);
}

TEST(LayoutMap, InjectivityOfLargeLayouts) {
  EXPECT_TRUE(Layout({{128, 4096, kM}, {64, 64, kM}, {64, 1, kM}}).is_injective());
  Layout windows({{100, 1, kM}, {3, 1, kM}});
  EXPECT_EQ(oracle::refusal<InjectivityError>([&] { windows.inverse({{kM, 1}}); }),
            "error[HV0530]: S[(100, 3) : (1, 1)] is not injective: indices 1 and 3 share the point 1\n"
            "help: only an injective layout has an inverse");
}

TEST(LayoutAxis, OrderIsByKindThenName) {
  EXPECT_LT(axes::x(), axes::y());
  EXPECT_LT(axes::y(), axes::cta());
  EXPECT_LT(axes::tx(), axes::Bank());
  EXPECT_EQ(Axis::make("laneid", AxisKind::Thread), axes::laneid());
  EXPECT_EQ(Axis(), axes::m());
  Axis ring = Axis::make("ring_axis", AxisKind::Device);
  EXPECT_EQ(Axis::find("ring_axis"), ring);
  EXPECT_EQ(Axis::find("no_such_axis"), std::nullopt);
  EXPECT_EQ(to_string(ring.kind()), "device");
}

}  // namespace
}  // namespace helve
