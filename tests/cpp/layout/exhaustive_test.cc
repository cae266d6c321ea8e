// The laws of the Axe algebra over whole families of small layouts.
// All ordered factorisations with strides 0 to 8, 16 and 32. The full families run with HELVE_TEST_LONG, a seeded
// sample of them always. Values stand in plain vectors here, so that millions of layouts take minutes.
#include <algorithm>

#include "helve/layout/rearrange.h"
#include "helve/layout/recognise.h"
#include "helve/support/hash.h"
#include "oracle.h"

namespace helve {
namespace {

const std::vector<int64_t> kStrides = {0, 1, 2, 3, 4, 5, 6, 7, 8, 16, 32};
const Axis kM = axes::m();
const Axis kLane = axes::laneid();

using Values = std::vector<int64_t>;

/// The addresses of all indices of a layout on `m` alone.
Values values(const Iters& shard) {
  Values result{0};
  for (const Iter& iter : shard) {
    Values longer;
    longer.reserve(result.size() * static_cast<size_t>(iter.extent));
    for (const int64_t value : result) {
      for (int64_t digit = 0; digit < iter.extent; ++digit) longer.push_back(value + digit * iter.stride);
    }
    result = std::move(longer);
  }
  return result;
}

uint64_t fingerprint(const Values& items) {
  uint64_t hash = items.size();
  for (const int64_t item : items) hash = hash_mix(hash, static_cast<uint64_t>(item));
  return hash;
}

/// Every (or, with a denominator above 1, about one in so many) shard of the family.
class Family {
 public:
  explicit Family(uint32_t denominator) : denominator_(denominator), random_(7) {}

  template <class Visit>
  int64_t visit(int64_t size, const std::vector<std::pair<int64_t, Axis>>& steps, Visit&& visit) {
    int64_t count = 0;
    oracle::for_each_shard(size, steps, [&](const Iters& shard) {
      if (denominator_ > 1 && random_() % denominator_ != 0) return;
      ++count;
      visit(shard);
    });
    return count;
  }

 private:
  uint32_t denominator_;
  std::mt19937 random_;
};

uint32_t denominator(uint32_t sampled) { return oracle::long_tests() ? 1 : sampled; }

/// Do the values of `size` indices split into blocks of `inner`, each block the first one moved?
bool splits(const Values& f, size_t inner) {
  for (size_t x = inner; x < f.size(); ++x) {
    if (f[x] - f[x - x % inner] != f[x % inner]) return false;
  }
  return true;
}

/// Is f, with f[0] = 0, the map of some iters?
bool representable(const Values& f) {
  if (f.size() == 1) return true;
  for (size_t extent = 2; extent <= f.size(); ++extent) {
    if (f.size() % extent != 0 || !splits(f, extent)) continue;
    bool straight = true;
    for (size_t digit = 0; digit < extent; ++digit) straight &= f[digit] == static_cast<int64_t>(digit) * f[1];
    if (!straight) continue;
    Values rest;
    for (size_t x = 0; x < f.size(); x += extent) rest.push_back(f[x]);
    if (representable(rest)) return true;
  }
  return false;
}

/// Equal maps have equal canonical forms, and different maps different ones.
class CanonicalForms {
 public:
  void add(const Values& f, const Layout& canonical) {
    const uint64_t map = fingerprint(f);
    const uint64_t form = canonical.hash();
    EXPECT_EQ(form_of_.emplace(map, form).first->second, form) << to_string(canonical);
    EXPECT_EQ(map_of_.emplace(form, map).first->second, map) << to_string(canonical);
  }

 private:
  std::unordered_map<uint64_t, uint64_t> form_of_;
  std::unordered_map<uint64_t, uint64_t> map_of_;
};

void check_places(const Layout& layout, const Values& f) {
  const auto [low, high] = std::minmax_element(f.begin(), f.end());
  ASSERT_EQ(layout.span(kM), *high - *low + 1) << to_string(layout);
  std::unordered_map<int64_t, int64_t> first;
  bool injective = true;
  for (size_t x = 0; x < f.size(); ++x) injective &= first.emplace(f[x], static_cast<int64_t>(x)).second;
  ASSERT_EQ(layout.is_injective(), injective) << to_string(layout);
  for (size_t x = 0; x < f.size(); ++x) {
    const Points points = layout.apply(static_cast<int64_t>(x));
    ASSERT_EQ(points.size(), 1u);
    const Point point = points[0];
    const auto at = point.find(kM);
    ASSERT_EQ(at == point.end() ? 0 : at->second, f[x]) << to_string(layout) << " at " << x;
  }
  if (!injective) return;
  for (int64_t address = *low - 1; address <= *high + 1; ++address) {
    const auto found = layout.inverse(Point{{kM, address}});
    const auto expected = first.find(address);
    ASSERT_EQ(found.has_value(), expected != first.end()) << to_string(layout) << " at address " << address;
    if (found) {
      ASSERT_EQ(*found, expected->second) << to_string(layout) << " at address " << address;
    }
  }
}

void check_forms(const Layout& layout, const Values& f, CanonicalForms& forms) {
  const Layout canonical = layout.canonicalize();
  ASSERT_EQ(values(canonical.shard()), f) << to_string(layout) << " -> " << to_string(canonical);
  ASSERT_EQ(canonical.canonicalize(), canonical) << to_string(layout);
  ASSERT_TRUE(layout.equivalent(canonical)) << to_string(layout);
  forms.add(f, canonical);
  ASSERT_EQ(parse_layout(to_string(layout)), layout) << to_string(layout);
  for (size_t inner = 1; inner <= f.size(); ++inner) {
    if (f.size() % inner != 0) continue;
    const std::vector<int64_t> shape{static_cast<int64_t>(f.size() / inner), static_cast<int64_t>(inner)};
    Values slow;
    for (size_t x = 0; x < f.size(); x += inner) slow.push_back(f[x]);
    const bool possible = splits(f, inner) && representable(slow) &&
                          representable(Values(f.begin(), f.begin() + static_cast<int64_t>(inner)));
    if (!possible) {
      ASSERT_THROW(layout.group(shape), DivisibilityError) << to_string(layout) << " by " << inner;
      continue;
    }
    const GroupedLayout grouped = layout.group(shape);
    ASSERT_EQ(values(grouped.layout.shard()), f) << to_string(layout) << " by " << inner;
    ASSERT_EQ(static_cast<int64_t>(values(grouped.block(1)).size()), shape[1]) << to_string(layout);
  }
}

void check_slice(const Layout& layout, const Values& f, int64_t begin, int64_t end) {
  Values part(f.begin() + begin, f.begin() + end);
  for (int64_t& value : part) value -= f[static_cast<size_t>(begin)];
  if (!representable(part)) {
    ASSERT_THROW(slice(layout, {{begin, end}}, {layout.size()}), UnsupportedError) << to_string(layout);
    return;
  }
  const Layout piece = slice(layout, {{begin, end}}, {layout.size()});
  ASSERT_EQ(values(piece.shard()), part) << to_string(layout) << " [" << begin << ", " << end << ")";
  ASSERT_EQ(piece.offset(kM), f[static_cast<size_t>(begin)]) << to_string(layout);
}

void check_parts(const Layout& layout, const Values& f, std::mt19937& random) {
  const int64_t size = layout.size();
  if (size <= 8) {
    for (int64_t begin = 0; begin < size; ++begin) {
      for (int64_t end = begin + 1; end <= size; ++end) check_slice(layout, f, begin, end);
    }
  } else {
    const int64_t begin = static_cast<int64_t>(random() % static_cast<uint32_t>(size));
    check_slice(layout, f, begin, begin + 1 + static_cast<int64_t>(random() % static_cast<uint32_t>(size - begin)));
  }
  const Layout parts = unpack(layout, 2);
  Values expected;
  for (const int64_t value : f) expected.insert(expected.end(), {2 * value, 2 * value + 1});
  ASSERT_EQ(values(parts.shard()), expected) << to_string(layout);
  ASSERT_TRUE(pack(parts, 2).equivalent(layout)) << to_string(layout);
}

TEST(LayoutExhaustive, UnaryOperationsOnOneAxis) {
  Family family(denominator(400));
  CanonicalForms forms;
  std::mt19937 random(11);
  int64_t count = 0;
  for (int64_t size = 1; size <= 64; ++size) {
    count += family.visit(size, oracle::steps_on(kStrides, kM), [&](const Iters& shard) {
      if (testing::Test::HasFailure()) return;
      const Layout layout(shard);
      const Values f = values(shard);
      check_places(layout, f);
      check_forms(layout, f, forms);
      check_parts(layout, f, random);
    });
  }
  RecordProperty("layouts", static_cast<int>(count));
  EXPECT_GT(count, 5'000);
}

/// The laws of a layout on several axes, with replicas, from its image.
void check_image(const Layout& layout) {
  const oracle::Image image = oracle::image(layout);
  for (const Axis axis : {kM, kLane}) ASSERT_EQ(layout.span(axis), oracle::span(image, axis)) << to_string(layout);
  const bool injective = layout.is_injective();
  ASSERT_EQ(injective, oracle::injective(image)) << to_string(layout);
  const Layout canonical = layout.canonicalize();
  ASSERT_EQ(oracle::image(canonical), image) << to_string(layout) << " -> " << to_string(canonical);
  ASSERT_EQ(canonical.canonicalize(), canonical) << to_string(layout);
  for (int64_t x = 0; x < layout.size(); ++x) {
    ASSERT_EQ(oracle::applied(layout, x), image[static_cast<size_t>(x)]) << to_string(layout);
    if (!injective) continue;
    for (const oracle::Place& p : image[static_cast<size_t>(x)]) ASSERT_EQ(layout.inverse(p), x) << to_string(layout);
  }
}

std::vector<std::pair<int64_t, Axis>> steps_on_two_axes() {
  std::vector<std::pair<int64_t, Axis>> steps = oracle::steps_on(kStrides, kM);
  for (const auto& step : oracle::steps_on(kStrides, kLane)) steps.push_back(step);
  return steps;
}

TEST(LayoutExhaustive, UnaryOperationsOnTwoAxes) {
  Family family(denominator(300));
  int64_t count = 0;
  for (int64_t size = 1; size <= 16; ++size) {
    count += family.visit(size, steps_on_two_axes(), [&](const Iters& shard) {
      if (!testing::Test::HasFailure()) check_image(Layout(shard));
    });
  }
  RecordProperty("layouts", static_cast<int>(count));
  EXPECT_GT(count, 500);
}

TEST(LayoutExhaustive, UnaryOperationsOnTwoAxesWithReplicas) {
  Iters iters;
  for (const int64_t extent : {2, 3}) {
    for (const auto& [stride, axis] : steps_on_two_axes()) iters.push_back({extent, stride, axis});
  }
  std::vector<Iters> replicas{{}};
  for (size_t a = 0; a < iters.size(); ++a) {
    replicas.push_back({iters[a]});
    for (size_t b = a; b < iters.size(); ++b) replicas.push_back({iters[a], iters[b]});
  }
  Family family(1);
  std::mt19937 random(13);
  const uint32_t some = denominator(8000);
  int64_t count = 0;
  for (int64_t size = 1; size <= 8; ++size) {
    family.visit(size, steps_on_two_axes(), [&](const Iters& shard) {
      for (const Iters& replica : replicas) {
        if (testing::Test::HasFailure() || (some > 1 && random() % some != 0)) continue;
        ++count;
        check_image(Layout(shard, replica));
      }
    });
  }
  RecordProperty("layouts", static_cast<int>(count));
  EXPECT_GT(count, 500);
}

/// tile and direct_sum by their definitions, and the four recognisers on what they made.
void check_pair(const Layout& a, const Values& f, const Layout& b, const Values& g) {
  const std::vector<int64_t> a_shape{a.size()}, b_shape{b.size()}, whole_shape{a.size() * b.size()};
  const int64_t span = b.span(kM);
  const Layout tiled = tile(a, a_shape, b, b_shape);
  const Layout sum = direct_sum(a, a_shape, b, b_shape);
  const Values tiled_values = values(tiled.shard());
  const Values sum_values = values(sum.shard());
  for (size_t x = 0; x < f.size(); ++x) {
    for (size_t y = 0; y < g.size(); ++y) {
      ASSERT_EQ(tiled_values[x * g.size() + y], f[x] * span + g[y]) << to_string(a) << " by " << to_string(b);
      ASSERT_EQ(sum_values[x * g.size() + y], f[x] + g[y]) << to_string(a) << " and " << to_string(b);
    }
  }
  const auto outer = outer_of(tiled, whole_shape, b, b_shape);
  const auto inner = inner_of(tiled, whole_shape, a, a_shape);
  const auto left = left_of(sum, whole_shape, b, b_shape);
  const auto right = right_of(sum, whole_shape, a, a_shape);
  ASSERT_TRUE(outer && inner && left && right) << to_string(a) << " and " << to_string(b);
  ASSERT_EQ(values(outer->shard()), f) << to_string(tiled) << " by " << to_string(b);
  ASSERT_EQ(values(tile(a, a_shape, *inner, b_shape).shard()), tiled_values)
      << to_string(a) << " and " << to_string(*inner);
  ASSERT_EQ(values(left->shard()), f) << to_string(sum) << " less " << to_string(b);
  ASSERT_EQ(values(right->shard()), g) << to_string(sum) << " less " << to_string(a);
}

TEST(LayoutExhaustive, ProductsOfPairsOnOneAxis) {
  std::vector<std::pair<Layout, Values>> all;
  Family whole(1);
  for (int64_t size = 1; size <= 8; ++size) {
    whole.visit(size, oracle::steps_on(kStrides, kM),
                [&](const Iters& shard) { all.emplace_back(Layout(shard), values(shard)); });
  }
  std::mt19937 random(17);
  const uint32_t some = denominator(400);
  int64_t count = 0;
  for (const auto& [a, f] : all) {
    for (const auto& [b, g] : all) {
      if (some > 1 && random() % some != 0) continue;
      ++count;
      check_pair(a, f, b, g);
      if (testing::Test::HasFailure()) return;
    }
  }
  RecordProperty("pairs", static_cast<int>(count));
  EXPECT_GT(count, 5'000);
}

}  // namespace
}  // namespace helve
