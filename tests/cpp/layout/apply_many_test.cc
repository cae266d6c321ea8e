// Many indices at once, against the map itself.
#include "helve/layout/apply_many.h"

#include "batch_loops.h"
#include "oracle.h"

namespace helve {
namespace {

using Columns = std::vector<std::vector<int64_t>>;

/// The coordinates of every index, a column for each axis.
Columns applied(const BatchMap& map, const std::vector<int64_t>& indices) {
  Columns columns(map.axes().size(), std::vector<int64_t>(indices.size() * static_cast<size_t>(map.replicas()), -99));
  std::vector<int64_t*> out;
  for (auto& column : columns) out.push_back(column.data());
  map.apply(indices, out);
  return columns;
}

void check_indices(const Layout& layout, const std::vector<int64_t>& indices) {
  BatchMap map(layout);
  ASSERT_EQ(map.axes(), layout.axes());
  const auto replicas = static_cast<size_t>(map.replicas());
  std::vector<std::vector<oracle::Place>> places(indices.size(), std::vector<oracle::Place>(replicas));
  const Columns columns = applied(map, indices);
  for (size_t a = 0; a < columns.size(); ++a) {
    for (size_t i = 0; i < columns[a].size(); ++i) {
      if (columns[a][i] != 0) places[i / replicas][i % replicas][map.axes()[a]] = columns[a][i];
    }
  }
  for (size_t i = 0; i < indices.size(); ++i) {
    oracle::Places set(places[i].begin(), places[i].end());
    ASSERT_EQ(set.size(), replicas) << to_string(layout);
    ASSERT_EQ(set, oracle::points(layout, indices[i])) << to_string(layout) << " at " << indices[i];
  }
}

void check_batch(const Layout& layout) {
  std::vector<int64_t> indices;
  for (int64_t x = layout.size(); x-- > 0;) indices.push_back(x);
  check_indices(layout, indices);
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
  const Columns columns = applied(map, indices);
  for (size_t a = 0; a < 2; ++a) {
    bool lane = map.axes()[a] == axes::laneid();
    for (size_t i = 0; i < indices.size(); ++i) {
      EXPECT_EQ(columns[a][i], lane ? indices[i] / big : indices[i] % big * 3);
    }
  }
  for (int64_t limit : {int64_t{1} << 31, int64_t{1} << 62}) {  // where products of 64 bits are enough, and beyond
    for (int64_t divisor = 3; divisor < limit / 2; divisor = divisor * 3 + 2) {
      Layout pair({{limit / divisor, 0, axes::m()}, {divisor, 1, axes::m()}});
      BatchMap remainder(pair);
      std::vector<int64_t> edges;
      for (int64_t x : {int64_t{0}, pair.size() / 2 / divisor * divisor, pair.size() - divisor}) {
        for (int64_t y : {x, x + 1, x + divisor - 1}) edges.push_back(y);
      }
      const std::vector<int64_t> out = applied(remainder, edges)[0];
      for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], edges[i] % divisor) << edges[i] << " by " << divisor;
    }
  }
}

/// Extents that are powers of two, with one other at times; strides of every kind: powers of two that share bits or
/// not, others, and beyond 32 bits.
Layout random_bits(std::mt19937_64& random) {
  Iters shard;
  int left = 40;
  const size_t count = random() % 6;
  for (size_t k = 0; k < count; ++k) {
    const int width = static_cast<int>(random() % static_cast<uint64_t>(std::min(left, 12) + 1));
    left -= width;
    int64_t stride = int64_t{1} << random() % 20;
    if (random() % 4 == 0) stride = static_cast<int64_t>(random() % 4097) - 2048;
    if (random() % 16 == 0) stride = (int64_t{1} << 33) + static_cast<int64_t>(random() % 3);
    const bool other = random() % 12 == 0;
    shard.push_back({other ? 3 : int64_t{1} << width, stride, random() % 4 == 0 ? axes::laneid() : axes::m()});
  }
  const Iters replica = random() % 4 == 0 ? Iters{{2 + static_cast<int64_t>(random() % 2), 5, axes::m()}} : Iters{};
  const Point offset = random() % 2 == 0 ? Point{{axes::m(), static_cast<int64_t>(random() % 100) - 30}} : Point{};
  const int shift = random() % 2 == 0 ? 3 : -3;
  const Swizzle swizzle{2, static_cast<int>(random() % 4), shift};
  return Layout(shard, replica, offset, random() % 2 == 0 ? swizzle : Swizzle{});
}

TEST(LayoutBatch, RandomFieldsOfBits) {
  std::mt19937_64 random(23);
  for (int k = 0; k < 4000; ++k) {
    const Layout layout = random_bits(random);
    std::vector<int64_t> indices(random() % 150);
    for (int64_t& x : indices) x = static_cast<int64_t>(random() % static_cast<uint64_t>(layout.size()));
    check_indices(layout, indices);
    if (HasFatalFailure()) return;
  }
}

uint64_t sum_of(const BatchMap::AxisTerms& terms, uint64_t x) {
  uint64_t sum = terms.offset;
  for (const auto& term : terms.up) sum += x << term.shift & term.mask;
  for (const auto& term : terms.down) sum += x >> term.shift & term.mask;
  for (const auto& term : terms.products) sum += (x >> term.shift & term.mask) * term.coefficient;
  for (const auto& term : terms.quotients) sum += (x * term.factor >> term.shift) * term.coefficient;
  return static_cast<uint64_t>(terms.swizzle.apply(static_cast<int64_t>(sum)));
}

TEST(LayoutBatch, EveryFormOfTheLoop) {
  std::mt19937_64 random(29);
  const auto any = [&](uint64_t below) { return random() % below; };
  for (int k = 0; k < 2000; ++k) {
    BatchMap::AxisTerms terms;
    terms.offset = any(1000) - 500;
    const int low = static_cast<int>(any(20));
    if (any(2) == 0) terms.up.push_back({1, static_cast<int>(any(30)), ~uint64_t{0} << 20 << low});
    if (any(2) == 0) terms.down.push_back({1, static_cast<int>(any(30)), 0xff});
    if (any(2) == 0) terms.down.push_back({1, static_cast<int>(any(30)), 0xfff00});
    if (any(2) == 0) terms.products.push_back({1, low, ~uint64_t{0} >> (34 + any(20)), any(1000) - 500});
    if (any(2) == 0) terms.quotients.push_back({any(uint64_t{1} << 32), 31 + low, ~uint64_t{0}, -any(1u << 31)});
    if (any(2) == 0) terms.swizzle = {3, static_cast<int>(any(4)), any(2) == 0 ? 4 : -4};
    const int64_t size = int64_t{1} << (20 + low % 12);
    std::vector<int64_t> indices(any(200));
    for (int64_t& x : indices) x = static_cast<int64_t>(any(std::min<uint64_t>(size, 1u << 31)));
    for (const layout_detail::BatchSum sum : layout_detail::batch_sums()) {
      std::vector<int64_t> out(indices.size());
      ASSERT_TRUE(sum(terms, indices.data(), indices.size(), size, out.data()));
      for (size_t i = 0; i < out.size(); ++i) {
        ASSERT_EQ(out[i], static_cast<int64_t>(sum_of(terms, static_cast<uint64_t>(indices[i])))) << indices[i];
      }
      if (indices.empty()) continue;
      std::vector<int64_t> bad = indices;
      bad[any(bad.size())] = any(2) == 0 ? size : -1;
      ASSERT_FALSE(sum(terms, bad.data(), bad.size(), size, out.data()));
      std::vector<int64_t> in_place = indices;
      sum(terms, in_place.data(), in_place.size(), size, in_place.data());
      ASSERT_TRUE(sum(terms, indices.data(), indices.size(), size, out.data()));
      ASSERT_EQ(in_place, out);
    }
  }
}

TEST(LayoutBatch, AnIndexOutsideIsNamed) {
  for (const char* text :
       {"S[(3, 4) : (4, 1)]", "S[(3, 4) : (4, 1)] + R[2 : 12]", "S[12 : 8589934593]", "S[(3, 4) : (4@laneid, 1)]"}) {
    BatchMap map(parse_layout(text));
    for (int64_t bad : {int64_t{-1}, int64_t{12}, std::numeric_limits<int64_t>::min()}) {
      std::vector<int64_t> indices(3000, 5);
      indices[2500] = bad;
      EXPECT_EQ(oracle::refusal<BoundsError>([&] { applied(map, indices); }),
                "error[HV0540]: coordinate (" + std::to_string(bad) +
                    ",) is outside shape (12,)\nhelp: coordinate d is at least 0 and below extent d")
          << text;
    }
    EXPECT_NO_THROW(applied(map, {}));
  }
  BatchMap one((Layout()));
  EXPECT_THROW(one.apply(std::vector<int64_t>{0, 1}, {}), BoundsError);
  EXPECT_NO_THROW(one.apply(std::vector<int64_t>{0, 0}, {}));
}

}  // namespace
}  // namespace helve
