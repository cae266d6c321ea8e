// Many indices at once, against the map itself.
#include "helve/layout/apply_many.h"

#include "oracle.h"

namespace helve {
namespace {

void check_batch(const Layout& layout) {
  BatchMap map(layout);
  ASSERT_EQ(map.axes(), layout.axes());
  std::vector<int64_t> indices;
  for (int64_t x = layout.size(); x-- > 0;) indices.push_back(x);
  auto replicas = static_cast<size_t>(map.replicas());
  std::vector<oracle::Places> found(indices.size());
  std::vector<std::vector<oracle::Place>> places(indices.size(), std::vector<oracle::Place>(replicas));
  for (size_t a = 0; a < map.axes().size(); ++a) {
    std::vector<int64_t> out(indices.size() * replicas, -99);
    map.apply(a, indices, out.data());
    for (size_t i = 0; i < out.size(); ++i) {
      if (out[i] != 0) places[i / replicas][i % replicas][map.axes()[a]] = out[i];
    }
  }
  for (size_t i = 0; i < indices.size(); ++i) {
    oracle::Places set(places[i].begin(), places[i].end());
    ASSERT_EQ(set.size(), replicas) << to_string(layout);
    ASSERT_EQ(set, oracle::points(layout, indices[i])) << to_string(layout) << " at " << indices[i];
  }
}

TEST(LayoutBatch, EveryShardOfTwelve) {
  std::vector<std::pair<int64_t, Axis>> steps = {
      {0, axes::m()}, {1, axes::m()}, {-3, axes::m()}, {7, axes::m()}, {2, axes::laneid()}};
  for (int64_t size : {1, 7, 8, 12}) {
    oracle::for_each_shard(size, steps, [](const Iters& shard) { check_batch(Layout(shard)); });
    if (HasFatalFailure()) return;
  }
}

TEST(LayoutBatch, RandomLayoutsWithReplicasOffsetsAndSwizzles) {
  oracle::RandomLayouts random(11);
  for (int k = 0; k < 3000; ++k) {
    check_batch(random.layout(4, 7, true));
    if (HasFatalFailure()) return;
  }
}

TEST(LayoutBatch, ExtentsNearTheLimitsOfTheReciprocal) {
  const int64_t big = (int64_t{1} << 31) + 11;
  Layout layout({{big - 1, 1, axes::laneid()}, {big, 3, axes::m()}});
  BatchMap map(layout);
  std::vector<int64_t> indices = {
      0, 1, big - 1, big, big + 1, 5 * big - 1, 5 * big, layout.size() - 1, layout.size() - big};
  ASSERT_EQ(map.axes().size(), 2u);
  for (size_t a = 0; a < 2; ++a) {
    bool lane = map.axes()[a] == axes::laneid();
    std::vector<int64_t> out(indices.size());
    map.apply(a, indices, out.data());
    for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], lane ? indices[i] / big : indices[i] % big * 3);
  }
  for (int64_t limit : {int64_t{1} << 31, int64_t{1} << 62}) {  // where products of 64 bits are enough, and beyond
    for (int64_t divisor = 3; divisor < limit / 2; divisor = divisor * 3 + 2) {
      Layout pair({{limit / divisor, 0, axes::m()}, {divisor, 1, axes::m()}});
      BatchMap remainder(pair);
      std::vector<int64_t> edges;
      for (int64_t x : {int64_t{0}, pair.size() / 2 / divisor * divisor, pair.size() - divisor}) {
        for (int64_t y : {x, x + 1, x + divisor - 1}) edges.push_back(y);
      }
      std::vector<int64_t> out(edges.size(), -1);
      remainder.apply(0, edges, out.data());
      for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], edges[i] % divisor) << edges[i] << " by " << divisor;
    }
  }
}

TEST(LayoutBatch, AnIndexOutsideIsNamed) {
  BatchMap map(parse_layout("S[(3, 4) : (4, 1)]"));
  for (int64_t bad : {int64_t{-1}, int64_t{12}, std::numeric_limits<int64_t>::min()}) {
    std::vector<int64_t> indices(3000, 5);
    indices[2500] = bad;
    std::vector<int64_t> out(indices.size());
    EXPECT_EQ(oracle::refusal<BoundsError>([&] { map.apply(0, indices, out.data()); }),
              "error[HV0540]: coordinate (" + std::to_string(bad) +
                  ",) is outside shape (12,)\nhelp: coordinate d is at least 0 and below extent d");
  }
  EXPECT_NO_THROW(map.apply(0, {}, nullptr));
}

}  // namespace
}  // namespace helve
