// Swizzles and composed layouts against bit-by-bit evaluation.
// All small swizzles, positive and negative shifts, on layouts that hit, miss and cross their bits.
#include "helve/layout/cute/composed.h"

#include <gtest/gtest.h>

#include "cute_oracle.h"

namespace helve::cute {
namespace {

using namespace oracle;

/// Bit by bit: bit t of the result is bit t, xored with the source bit that belongs to it.
int64_t swizzled(const Swizzle& s, int64_t value) {
  int64_t result = value;
  for (int i = 0; i < s.bits; ++i) {
    int from = s.base + i + std::max(s.shift, 0);
    int to = s.base + i - std::min(s.shift, 0);
    if (value >> from & 1) result ^= int64_t{1} << to;
  }
  return result;
}

std::vector<Swizzle> swizzles() {
  std::vector<Swizzle> all;
  for (int bits = 0; bits <= 3; ++bits) {
    for (int base = 0; base <= 3; ++base) {
      for (int shift = -4; shift <= 4; ++shift) {
        if (bits <= std::abs(shift)) all.push_back(make_swizzle(bits, base, shift));
      }
    }
  }
  return all;
}

template <class Operation>
auto attempt(Operation&& operation) -> std::optional<decltype(operation())> {
  try {
    return operation();
  } catch (const LayoutError&) {
    return std::nullopt;
  }
}

TEST(CuteComposed, SwizzlesPermuteTheirBlocks) {
  for (const Swizzle& s : swizzles()) {
    std::vector<int64_t> block;
    for (int64_t i = 0; i < size(s); ++i) {
      block.push_back(s.apply(i));
      ASSERT_EQ(block.back(), swizzled(s, i)) << to_string(s);
      ASSERT_LT(block.back(), size(s)) << to_string(s);
      ASSERT_EQ(s.apply(block.back()), i) << to_string(s);
    }
    ASSERT_TRUE(injective(block));
  }
}

TEST(CuteComposed, SwizzlesThatAreNone) {
  for (auto [bits, base, shift] : {std::tuple(2, 0, 1), {1, 0, 0}, {-1, 0, 2}, {1, -1, 2}, {3, 30, 30}}) {
    EXPECT_FALSE(attempt([&] { return make_swizzle(bits, base, shift); })) << bits << base << shift;
  }
}

TEST(CuteComposed, PairsOfSwizzlesAnswerWithTheComposition) {
  int answered = 0;
  for (const Swizzle& s : swizzles()) {
    for (const Swizzle& t : swizzles()) {
      auto both = attempt([&] { return composition(s, t); });
      if (!both) continue;
      ++answered;
      for (int64_t i = 0; i < std::max(size(s), size(t)); ++i) {
        ASSERT_EQ(both->apply(i), s.apply(t.apply(i))) << to_string(s) << " o " << to_string(t);
      }
    }
  }
  EXPECT_GT(answered, 500);
}

TEST(CuteComposed, UnitsMoveWhole) {
  for (const Swizzle& s : swizzles()) {
    for (int64_t n : {1, 2, 4, 8, 16}) {
      Swizzle wide = downcast(s, n);
      for (int64_t i = 0; i < size(s) * n; ++i) ASSERT_EQ(wide.apply(i), s.apply(i / n) * n + i % n) << to_string(s);
      auto units = attempt([&] { return upcast(s, n); });
      if (!units) {
        ASSERT_LT(s.shift, 0) << to_string(s);
        continue;
      }
      for (int64_t i = 0; i < size(s) * n; ++i) ASSERT_EQ(units->apply(i / n), s.apply(i) / n) << to_string(s) << n;
    }
    ASSERT_EQ(recast(s, 8, 8), s);
  }
}

/// The composed layout of A o s is A(s(i)), and it is refused only where bits do not go to bits.
TEST(CuteComposed, SwizzlesMoveToTheLeft) {
  std::mt19937_64 random(11);
  int answered = 0;
  for (int round = 0; round < 20000; ++round) {
    Layout a = random_layout(random, 64);
    if (round % 2 == 0) a = make_layout_like(filter_zeros(a));
    std::vector<Swizzle> all = swizzles();
    const Swizzle& s = all[random() % all.size()];
    auto moved = attempt([&] { return composition(a, s); });
    if (!moved) continue;
    answered += s.bits > 0;
    for (int64_t i = 0; i < a.size(); ++i) {
      ASSERT_EQ((*moved)(i), value(digits_of(a), swizzled(s, i))) << to_string(a) << " o " << to_string(s);
    }
  }
  EXPECT_GT(answered, 3000);
}

TEST(CuteComposed, SlicesKeepTheirOffsetInside) {
  std::mt19937_64 random(12);
  for (int round = 0; round < 20000; ++round) {
    Layout inner = random_layout(random, 64);
    std::vector<Swizzle> all = swizzles();
    ComposedLayout layout(inner, {{static_cast<int64_t>(random() % 9), all[random() % all.size()]},
                                  {static_cast<int64_t>(random() % 5), Layout(random_layout(random, 32))}});
    IntTuple coordinate = idx2crd(IntTuple(static_cast<int64_t>(random() % inner.size())), inner.shape());
    IntTuple kept = coordinate;
    size_t all_count = 0;
    for (int64_t& digit : kept.leaves) {
      if (random() % 2 == 0) digit = kAll, ++all_count;
    }
    if (all_count == 0) continue;
    ComposedLayout part = slice(kept, layout);
    int64_t index = crd2idx(slice(kept, coordinate), slice(kept, inner.shape()));
    ASSERT_EQ(part(index), layout(coordinate)) << to_string(layout);
  }
}

/// Exactly the slices whose values are those of a layout, moved, are found.
TEST(CuteComposed, AffineSlicesAreFound) {
  std::mt19937_64 random(13);
  int found = 0;
  for (int round = 0; round < 20000; ++round) {
    Layout inner = flatten(random_layout(random, 48));
    std::vector<Swizzle> all = swizzles();
    ComposedLayout layout(inner, {{static_cast<int64_t>(random() % 20), all[random() % all.size()]}});
    std::vector<int64_t> moved;
    for (int64_t i = 0; i < layout.size(); ++i) moved.push_back(layout(i) - layout(0));
    bool expected = true;  // each leaf is a layout, and they add up
    int64_t prefix = 1;
    std::vector<std::vector<int64_t>> parts;
    for (const Mode& mode : inner.modes()) {
      std::vector<int64_t> part;
      for (int64_t x = 0; x < mode.extent; ++x) part.push_back(moved[x * prefix]);
      expected = expected && is_layout(part);
      parts.push_back(part);
      prefix *= mode.extent;
    }
    for (int64_t i = 0; i < layout.size(); ++i) {
      int64_t sum = 0;
      int64_t rest = i;
      for (const std::vector<int64_t>& part : parts) {
        sum += part[rest % static_cast<int64_t>(part.size())];
        rest /= static_cast<int64_t>(part.size());
      }
      expected = expected && sum == moved[i];
    }
    auto plain = affine(layout);
    ASSERT_EQ(plain.has_value(), expected) << to_string(layout);
    if (!plain) continue;
    ++found;
    ASSERT_EQ(image(plain->first), moved) << to_string(layout);
    ASSERT_EQ(plain->second, layout(0));
    ASSERT_TRUE(compatible(inner.shape(), plain->first.shape()));
  }
  EXPECT_GT(found, 2000);
}

TEST(CuteComposed, InversesAndSharedVectors) {
  std::mt19937_64 random(14);
  for (int round = 0; round < 20000; ++round) {
    Layout inner = random_layout(random, 64);
    if (round % 2 == 0) inner = make_layout_like(inner);
    std::vector<Swizzle> all = swizzles();
    ComposedLayout layout = composition(all[random() % all.size()], inner);
    ComposedLayout right = right_inverse(layout);
    ASSERT_GE(right.size(), 1);
    for (int64_t i = 0; i < right.size(); ++i) ASSERT_EQ(layout(right(i)), i) << to_string(layout);
    if (auto left = attempt([&] { return left_inverse(layout); })) {
      for (int64_t i = 0; i < layout.size(); ++i) ASSERT_EQ(layout((*left)(layout(i))), layout(i)) << to_string(layout);
    }
    Layout other = random_layout(random, 32);
    Layout shared = max_common_layout(layout, other);
    for (int64_t i = 0; i < shared.size(); ++i) {
      ASSERT_EQ(layout(shared(i)), i) << to_string(layout) << " and " << to_string(other);
      ASSERT_EQ(other(shared(i)), i) << to_string(layout) << " and " << to_string(other);
    }
  }
}

TEST(CuteComposed, StagesAddUp) {
  Layout inner = parse("(8,8):(8,1)");
  ComposedLayout layout = composition(make_swizzle(2, 0, 3), inner);
  EXPECT_EQ(to_string(layout), "SW_2_0_3 o 0 o (8,8):(8,1)");
  EXPECT_EQ(layout.cosize(), 64);
  ComposedLayout more = composition(parse("(8,8):(8,1)"), composition(make_swizzle(1, 0, 4), layout));
  EXPECT_EQ(to_string(more), "(8,8):(8,1) o 0 o SW_1_0_4 o 0 o SW_2_0_3 o 0 o (8,8):(8,1)");
  for (int64_t i = 0; i < 64; ++i) {
    ASSERT_EQ(more(i), inner(swizzled(make_swizzle(1, 0, 4), swizzled(make_swizzle(2, 0, 3), inner(i)))));
  }
  ComposedLayout tiled = composition(layout, Tiler(IntTuple(4)));
  EXPECT_EQ(to_string(tiled), "SW_2_0_3 o 0 o 4:8");
  EXPECT_EQ(to_string(upcast(downcast(layout, 4), 4)), to_string(layout));
}

}  // namespace
}  // namespace helve::cute
