// Slices, permutations, packing and projections, against enumeration and by value.
#include "helve/layout/rearrange.h"

#include "oracle.h"

namespace helve {
namespace {

using oracle::Place;
using oracle::Places;

const Axis kLane = axes::laneid();
const Axis kM = axes::m();

/// A slice has the points of the region, and is refused only when no iters give the region's displacements.
void check_slice(const Layout& layout, const IndexRegion& region, const std::vector<int64_t>& shape, int* refused) {
  std::vector<int64_t> extents;
  for (const auto& [begin, end] : region) extents.push_back(end - begin);
  int64_t size = 1;
  for (int64_t extent : extents) size *= extent;
  auto displacements = oracle::displacements(layout);
  std::vector<Place> f;
  std::vector<int64_t> sources;
  for (int64_t t = 0; t < size; ++t) {
    auto at = unflatten(t, extents);
    for (size_t d = 0; d < at.size(); ++d) at[d] += region[d].first;
    sources.push_back(flatten(at, shape));
    f.push_back(oracle::combine(displacements[sources[t]], -1, displacements[sources[0]]));
  }
  if (!oracle::representable(f)) {
    ++*refused;
    ASSERT_THROW(slice(layout, region, shape), UnsupportedError) << to_string(layout);
    return;
  }
  Layout part = slice(layout, region, shape);
  ASSERT_EQ(part.size(), size);
  ASSERT_EQ(part.swizzle(), layout.swizzle());
  for (int64_t t = 0; t < size; ++t) {
    ASSERT_EQ(oracle::points(part, t), oracle::points(layout, sources[t]))
        << to_string(layout) << " gives " << to_string(part);
  }
}

void check_every_slice(const Layout& layout, const std::vector<int64_t>& shape, int* refused) {
  std::vector<IndexRegion> regions{{}};
  for (int64_t extent : shape) {
    std::vector<IndexRegion> next;
    for (const IndexRegion& region : regions) {
      for (int64_t begin = 0; begin < extent; ++begin) {
        for (int64_t end = begin + 1; end <= extent; ++end) {
          next.push_back(region);
          next.back().push_back({begin, end});
        }
      }
    }
    regions = std::move(next);
  }
  for (const IndexRegion& region : regions) check_slice(layout, region, shape, refused);
}

TEST(LayoutSlice, EveryRegionOfSmallLayouts) {
  std::vector<std::pair<int64_t, Axis>> steps = {{0, kM}, {1, kM}, {2, kM}, {-3, kM}, {5, kM}, {1, kLane}};
  int refused = 0;
  for (int64_t size : {1, 4, 6, 8, 9}) {
    oracle::for_each_shard(size, steps, [&](const Iters& shard) {
      Layout layout(shard);
      check_every_slice(layout, {size}, &refused);
      for (int64_t outer = 2; outer < size; ++outer) {
        if (size % outer == 0) check_every_slice(layout, {outer, size / outer}, &refused);
      }
    });
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(refused, 0);
}

TEST(LayoutSlice, RandomLayoutsWithReplicasAndSwizzles) {
  oracle::RandomLayouts random(6);
  int refused = 0;
  for (int k = 0; k < (oracle::long_tests() ? 100000 : 5000); ++k) {
    Layout layout = random.layout(4, 4, true);
    std::vector<int64_t> shape{layout.size()};
    if (random.number(0, 1)) {
      shape.clear();
      for (const Iter& iter : layout.shard()) shape.push_back(iter.extent);
    }
    IndexRegion region;
    for (int64_t extent : shape) {
      int64_t begin = random.number(0, extent - 1);
      region.push_back({begin, random.number(begin + 1, extent)});
    }
    check_slice(layout, region, shape, &refused);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(refused, 0);
}

TEST(LayoutSlice, OneSymmetricWrap) {
  Layout layout({{4, 10, kM}, {4, 1, kM}});
  EXPECT_EQ(to_string(slice(layout, {{6, 10}}, {16})), "S[(2, 2) : (8, 1)] + 12");
}

TEST(LayoutSlice, AWrapIntoTheNextDigitButOne) {
  Layout layout({{2, 100, kM}, {2, 10, kM}, {4, 1, kM}});
  Layout part = slice(layout, {{6, 10}}, {16});  // 12 13 100 101
  EXPECT_EQ(to_string(part), "S[(2, 2) : (88, 1)] + 12");
}

TEST(LayoutSlice, SlicesOfLargeLayoutsNeedNoListing) {
  int64_t n = int64_t{1} << 20;
  Layout layout({{n, n, kM}, {n, 1, kM}});
  EXPECT_EQ(to_string(slice(layout, {{5, n - 1}, {7, n}}, {n, n})), "S[(1048570, 1048569) : (1048576, 1)] + 5242887");
}

TEST(LayoutSlice, Refusals) {
  Layout layout({{2, 100, kM}, {8, 1, kM}});
  std::string help = "\nhelp: begin and end where the digits of the layout begin and end";
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { slice(layout, {{5, 10}}, {16}); }),
            "error[HV0554]: the slice [5:10] of S[(2, 8) : (100, 1)] in shape (16,) is not a layout: at coordinate "
            "(3,) of the region it leaves the stride of those before it after 3 of 5 steps" +
                help);
  Layout threes({{3, 100, kM}, {3, 1, kM}});  // 1 2 100 101 102 200
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { slice(threes, {{1, 7}}, {9}); }),
            "error[HV0554]: the slice [1:7] of S[(3, 3) : (100, 1)] in shape (9,) is not a layout: at coordinate (5,) "
            "of the region its displacement is 199, an iter would give 102" +
                help);
  Layout lanes({{2, 1, kLane}, {4, 1, kM}});
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { slice(lanes, {{3, 5}}, {8}); }),
            "error[HV0554]: the slice [3:5] of S[(2, 4) : (1@laneid, 1)] in shape (8,) is not a layout: at coordinate "
            "(1,) of the region its displacement 1@laneid + -3 is on two axes" +
                help);
  EXPECT_EQ(oracle::refusal<BoundsError>([&] { slice(layout, {{0, 1}, {4, 9}}, {2, 8}); }),
            "error[HV0541]: region 4:9 of dimension 1 is empty or outside [0, 8)\n"
            "help: a region begins at 0 or later, ends after it begins, and stays inside the shape");
  EXPECT_THROW(slice(layout, {{3, 3}}, {16}), BoundsError);
  EXPECT_THROW(slice(layout, {{-1, 3}}, {16}), BoundsError);
  EXPECT_EQ(oracle::refusal<ShapeError>([&] { slice(layout, {{0, 16}}, {2, 8}); }),
            "error[HV0513]: slice: region [0:16] and shape (2, 8) have different ranks\n"
            "help: give one entry for each dimension");
}

TEST(LayoutPermute, EveryOrderOfThreeDimensions) {
  oracle::RandomLayouts random(7);
  for (int k = 0; k < 300; ++k) {
    Layout drawn = random.layout(4, 3, true);
    std::vector<int64_t> shape(3, 1);
    for (size_t i = 0; i < drawn.shard().size(); ++i) shape[std::min<size_t>(i, 2)] *= drawn.shard()[i].extent;
    std::vector<int64_t> order{0, 1, 2};
    do {
      Layout result = permute(drawn, shape, order);
      std::vector<int64_t> permuted{shape[order[0]], shape[order[1]], shape[order[2]]};
      for (int64_t x = 0; x < drawn.size(); ++x) {
        auto at = unflatten(x, shape);
        std::vector<int64_t> moved{at[order[0]], at[order[1]], at[order[2]]};
        ASSERT_EQ(oracle::points(result, flatten(moved, permuted)), oracle::points(drawn, x)) << to_string(drawn);
      }
    } while (std::next_permutation(order.begin(), order.end()));
  }
  EXPECT_EQ(oracle::refusal<ShapeError>([] { permute(Layout({{6, 1, kM}}), {2, 3}, {0, 0}); }),
            "error[HV0514]: (0, 0) is not an order of 2 dimensions\nhelp: name each dimension from 0 once");
  EXPECT_THROW(permute(Layout({{6, 1, kM}}), {2, 3}, {0, 2}), ShapeError);
  EXPECT_THROW(permute(Layout({{6, 1, kM}}), {2, 3}, {-1, 0}), ShapeError);
  EXPECT_THROW(permute(Layout({{6, 1, kM}}), {2, 3}, {0}), ShapeError);
}

Places on_memory(const Places& points, int64_t factor, int64_t shift) {
  Places result;
  for (const Place& p : points) {
    Place scaled = p;
    auto it = p.find(kM);
    int64_t value = (it == p.end() ? 0 : it->second) * factor + shift;
    scaled.erase(kM);
    if (value != 0) scaled[kM] = value;
    result.insert(scaled);
  }
  return result;
}

TEST(LayoutPack, UnpackFollowsItsLawAndPackUndoesIt) {
  oracle::RandomLayouts random(8);
  for (int k = 0; k < 3000; ++k) {
    Layout layout = random.layout(3, 4, true);
    for (int64_t factor : {1, 2, 3, 4}) {
      if (factor == 3 && !layout.canonicalize().swizzle().identity()) {
        ASSERT_THROW(unpack(layout, factor), UnsupportedError);
        continue;
      }
      Layout parts = unpack(layout, factor);
      ASSERT_EQ(parts.size(), layout.size() * factor);
      for (int64_t x = 0; x < layout.size(); ++x) {
        for (int64_t j = 0; j < factor; ++j) {
          ASSERT_EQ(oracle::points(parts, factor * x + j), on_memory(oracle::points(layout, x), factor, j))
              << to_string(layout) << " by " << factor << ": " << to_string(parts);
        }
      }
      ASSERT_TRUE(pack(parts, factor).equivalent(layout)) << to_string(layout);
    }
  }
}

TEST(LayoutPack, PackIsRefusedExactlyWherePacksAreTorn) {
  auto steps = oracle::steps_on({0, 1, 2, 3, 4, 8}, kM);
  int packed = 0;
  int refused = 0;
  for (int64_t size : {1, 2, 4, 6, 8, 12}) {
    oracle::for_each_shard(size, steps, [&](const Iters& shard) {
      for (int64_t start : {0, 1, 2}) {
        for (const Iters& replica : {Iters{}, {{2, 2, kM}}, {{2, 3, kM}}}) {
          Layout layout(shard, replica, {{kM, start}});
          for (int64_t factor : {2, 3}) {
            // Every pack of every replica begins at a multiple of the factor, and its parts follow each other.
            bool whole = size % factor == 0;
            for (int64_t x = 0; whole && x < size; ++x) {
              Places first = oracle::points(layout, x - x % factor);
              whole = oracle::points(layout, x) == on_memory(first, 1, x % factor);
              for (const Place& p : first) whole = whole && (p.count(kM) ? p.at(kM) : 0) % factor == 0;
            }
            if (!whole) {
              ++refused;
              ASSERT_THROW(pack(layout, factor), DivisibilityError) << to_string(layout) << " by " << factor;
              continue;
            }
            ++packed;
            Layout result = pack(layout, factor);
            for (int64_t x = 0; x < result.size(); ++x) {
              ASSERT_EQ(on_memory(oracle::points(result, x), factor, 0), oracle::points(layout, x * factor));
            }
          }
        }
      }
    });
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(packed, 100);
  EXPECT_GT(refused, 100);
}

TEST(LayoutPack, Refusals) {
  auto text = [](const Layout& layout, int64_t factor) {
    return oracle::refusal<DivisibilityError>([&] { pack(layout, factor); });
  };
  std::string help =
      "\nhelp: packed elements are neighbours in index and in memory, and start at multiples of the factor";
  EXPECT_EQ(text(Layout({{5, 1, kM}}), 2), "error[HV0522]: S[5 : 1] cannot be packed by 2: it has 5 elements" + help);
  EXPECT_EQ(text(Layout({{4, 2, kM}}), 2),
            "error[HV0522]: S[4 : 2] cannot be packed by 2: its last iter is 4:2" + help);
  EXPECT_EQ(text(Layout({{3, 5, kM}, {4, 1, kM}}), 2),
            "error[HV0522]: S[(3, 4) : (5, 1)] cannot be packed by 2: iter 3:5 moves by a part of a pack" + help);
  EXPECT_EQ(text(Layout({{4, 1, kM}}, {}, {{kM, 3}}), 2),
            "error[HV0522]: S[4 : 1] + 3 cannot be packed by 2: its offset is 3" + help);
  std::string swizzle_help = "\nhelp: the factor is a power of two, and the swizzle's base is at least its logarithm";
  Layout swizzled({{64, 1, kM}}, {}, {}, Swizzle{2, 1, 3});
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { pack(swizzled, 4); }),
            "error[HV0556]: S[64 : 1] ^ Swizzle(2, 1, 3) cannot be packed by 4: Swizzle(2, 1, 3) keeps only 2 elements "
            "together" +
                swizzle_help);
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { unpack(swizzled, 3); }),
            "error[HV0556]: S[64 : 1] ^ Swizzle(2, 1, 3) cannot be unpacked by 3: 3 is no power of two" + swizzle_help);
  EXPECT_EQ(to_string(pack(swizzled, 2)), "S[32 : 1] ^ Swizzle(2, 0, 3)");
  EXPECT_THROW(pack(swizzled, 0), BoundsError);
  EXPECT_THROW(unpack(swizzled, -2), BoundsError);
}

TEST(LayoutProject, KeepsTheDigitsOfItsAxes) {
  Layout layout = parse_layout(
      "S[(2, 8, 4, 2) : (1@x, 4@laneid, 16, 1)] + R[(2, 2) : (4@warpid, 2)] + 5@warpid + 3 ^ Swizzle(1, 2, 2)");
  EXPECT_EQ(to_string(storage(layout)), "S[(4, 2) : (16, 1)] + R[2 : 2] + 3 ^ Swizzle(1, 2, 2)");
  EXPECT_EQ(to_string(project(layout, {axes::x()})), "S[2 : 1@x]");
  EXPECT_EQ(to_string(project(layout, {kLane, axes::warpid()})), "S[8 : 4@laneid] + R[2 : 4@warpid] + 5@warpid");
  EXPECT_EQ(project(layout, {}), Layout());
}

TEST(LayoutFuse, ThreadAxesCountTogether) {
  Layout layout = parse_layout("S[(8, 2, 4, 2) : (4@laneid, 1@warpid, 1@laneid, 1)] + R[2 : 4@warpid] + 5@warpid");
  Layout fused = fuse_axes(layout, axes::tx());
  EXPECT_EQ(to_string(fused), "S[(8, 2, 4, 2) : (4@tx, 32@tx, 1@tx, 1)] + R[2 : 128@tx] + 160@tx");
  for (int64_t x = 0; x < layout.size(); ++x) {
    Places expected;
    for (const Place& p : oracle::points(layout, x)) {
      Point point{{kM, p.count(kM) ? p.at(kM) : 0}, {axes::tx(), p.at(axes::warpid()) * 32}};
      if (p.count(kLane)) point[axes::tx()] += p.at(kLane);
      expected.insert(oracle::place(point));
    }
    ASSERT_EQ(oracle::points(fused, x), expected);
  }
  Layout group = parse_layout("S[(2, 4, 32) : (1@wgid, 1@wid_in_wg, 1@laneid)]");
  EXPECT_EQ(to_string(fuse_axes(group, axes::tx()).canonicalize()), "S[256 : 1@tx]");
  EXPECT_EQ(to_string(fuse_axes(group, axes::tid_in_wg()).canonicalize()), "S[(2, 128) : (1@wgid, 1@tid_in_wg)]");
  EXPECT_EQ(to_string(fuse_axes(group, axes::warpid())), "S[(2, 4, 32) : (4@warpid, 1@warpid, 1@laneid)]");
  EXPECT_EQ(to_string(fuse_axes(parse_layout("S[2 : 1@x] + 1@y + 2@wgid"), axes::tx())), "S[2 : 1@x] + 1@y + 256@tx");
}

TEST(LayoutFuse, Refusals) {
  Layout both = parse_layout("S[(2, 2) : (1@wgid, 1@warpid)]");
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { fuse_axes(both, axes::tx()); }),
            "error[HV0558]: axes 'warpid' and 'wgid' of S[(2, 2) : (1@wgid, 1@warpid)] count the same threads and "
            "cannot be fused to 'tx'\n"
            "help: describe the threads by one chain of axes: wgid, wid_in_wg, laneid or warpid, laneid or wgid, "
            "tid_in_wg");
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { fuse_axes(both, kLane); }),
            "error[HV0557]: axes cannot be fused to 'laneid'\nhelp: targets are: tx, tid_in_wg, warpid");
}

TEST(LayoutFuse, PartsWithAGapBetweenThemAreRefused) {
  std::string help =
      "\nhelp: name the axis between them, also when it has extent 1: laneid, wid_in_wg and wgid, or laneid and "
      "warpid, "
      "or tid_in_wg and wgid";
  Layout gap = parse_layout("S[(2, 32) : (1@wgid, 1@laneid)]");
  std::string text =
      "error[HV0563]: axes 'laneid' (thread in warp) and 'wgid' (warpgroup in cta) of S[(2, 32) : (1@wgid, 1@laneid)] "
      "do not connect" +
      help;
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { fuse_axes(gap, axes::tx()); }), text);
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { execution_scopes(gap); }), text);
  Layout whole = parse_layout("S[(2, 1, 32) : (1@wgid, 1@wid_in_wg, 1@laneid)]");
  EXPECT_EQ(to_string(fuse_axes(whole, axes::tx())), "S[(2, 1, 32) : (128@tx, 32@tx, 1@tx)]");
}

TEST(LayoutScopes, AxesFormOneChain) {
  auto scopes = [](const char* text) { return execution_scopes(parse_layout(text)); };
  using S = ExecutionScopes;
  EXPECT_EQ(scopes("S[8 : 1]"), std::nullopt);
  EXPECT_EQ(scopes("S[(2, 8) : (1@x, 1@reg)]"), std::nullopt);
  EXPECT_EQ(scopes("S[8 : 1@laneid]"), (S{"thread", "warp"}));
  EXPECT_EQ(scopes("S[(4, 8) : (1@warpid, 1@laneid)]"), (S{"thread", "cta"}));
  EXPECT_EQ(scopes("S[8 : 1@laneid] + R[4 : 1@wid_in_wg]"), (S{"thread", "warpgroup"}));
  EXPECT_EQ(scopes("S[(4, 8) : (1@wid_in_wg, 1@laneid)] + 1@wgid"), (S{"thread", "cta"}));
  EXPECT_EQ(scopes("S[(4, 8, 2) : (1@cta_in_cluster, 1@tx, 1)]"), (S{"thread", "cluster"}));
  EXPECT_EQ(scopes("S[(4, 8) : (1@cta, 1@warpid)]"), (S{"warp", "device"}));
  for (const char* text :
       {"S[(2, 2) : (1@warpid, 1@wgid)]", "S[(2, 2) : (1@tx, 1@laneid)]", "S[(2, 2) : (1@laneid, 1@cta)]",
        "S[(2, 2) : (1@cta, 1@cta_in_cluster)]", "S[2 : 1@laneid] + 1@wgid"}) {
    EXPECT_THROW(scopes(text), UnsupportedError) << text;
  }
}

}  // namespace
}  // namespace helve
