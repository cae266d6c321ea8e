// The laws of the CuTe algebra, exhaustively for small layouts and at random for nested ones.
// Operations that may refuse are held to refuse exactly when brute force finds no answer, or their precondition fails.
#include <gtest/gtest.h>

#include "cute_oracle.h"

namespace helve::cute {
namespace {

using namespace oracle;

template <class Operation>
auto attempt(Operation&& operation) -> std::optional<decltype(operation())> {
  try {
    return operation();
  } catch (const LayoutError&) {
    return std::nullopt;
  }
}

std::string text(const Digits& digits) { return to_string(layout_of(digits)); }

/// Sorted by stride, without extent 1 and stride 0.
Digits sorted(const Digits& digits) {
  Digits result;
  for (const Digit& digit : digits) {
    if (digit.extent > 1 && digit.stride != 0) result.push_back(digit);
  }
  std::stable_sort(result.begin(), result.end(), [](const Digit& a, const Digit& b) { return a.stride < b.stride; });
  return result;
}

void check_shortening(const Layout& layout, const Digits& digits, const std::vector<int64_t>& values) {
  Layout shorter = coalesce(layout);
  ASSERT_EQ(image(shorter), values) << text(digits);
  for (size_t k = 0; k < shorter.modes().size(); ++k) {
    const Mode& mode = shorter.modes()[k];
    ASSERT_TRUE(mode.extent > 1 || shorter == Layout()) << text(digits);
    if (k > 0) {
      const Mode& left = shorter.modes()[k - 1];
      ASSERT_NE(left.extent * left.stride, mode.stride) << text(digits);
    }
  }
  Digits kept;
  for (const Digit& digit : digits) {
    if (digit.stride != 0) kept.push_back(digit);
  }
  if (kept.empty()) kept.push_back({1, 0});
  ASSERT_EQ(image(filter(layout)), image(kept)) << text(digits);
  ASSERT_EQ(filter_zeros(layout).size(), count(kept)) << text(digits);
  int64_t top = 0;
  for (int64_t v : values) top = std::max(top, v);
  ASSERT_EQ(layout.cosize(), top + 1) << text(digits);
  Layout kernel = nullspace(layout);
  ASSERT_EQ(kernel.size() * filter(layout).size(), layout.size()) << text(digits);
  for (int64_t i : image(kernel)) ASSERT_EQ(value(digits, i), 0) << text(digits);
  ASSERT_EQ(nullspace(kernel), Layout()) << text(digits);
  ASSERT_EQ(!find_collision(layout), injective(values)) << text(digits);
  Layout like = make_layout_like(layout);
  ASSERT_EQ(like.shape(), layout.shape());
  ASSERT_TRUE(injective(image(filter(like)))) << text(digits);
  ASSERT_EQ(filter(like).cosize(), filter(like).size()) << text(digits);
}

/// Answers exactly when the sorted modes do not reach into each other; then the law.
void check_complement(const Layout& layout, const Digits& digits, const std::vector<int64_t>& values, int64_t bound) {
  bool apart = true;
  bool nested = true;
  int64_t end = 1;
  for (const Digit& digit : sorted(digits)) {
    apart = apart && digit.stride >= end;
    nested = nested && digit.stride % end == 0;
    end = digit.extent * digit.stride;
  }
  auto rest = attempt([&] { return complement(layout, bound); });
  ASSERT_EQ(rest.has_value(), apart) << text(digits);
  if (!rest) return;
  std::vector<int64_t> others = image(*rest);
  ASSERT_TRUE(std::is_sorted(others.begin(), others.end())) << text(digits);
  int64_t highest = 0;
  for (int64_t v : values) highest = std::max(highest, v);
  ASSERT_GE(end + others.back(), bound) << text(digits);
  if (nested) {
    ASSERT_GE(highest + others.back() + 1, bound) << text(digits);
    ASSERT_EQ(filter(layout).size() * rest->size(), highest + others.back() + 1) << text(digits);
  }
  ASSERT_LE(others.back() + 1, (bound + end - 1) / end * end) << text(digits);
  std::vector<char> seen(static_cast<size_t>(highest + others.back() + 1), 0);
  std::vector<char> own(static_cast<size_t>(highest + 1), 0);
  for (int64_t v : values) {
    if (own[v]) continue;
    own[v] = 1;
    for (int64_t w : others) {
      ASSERT_FALSE(seen[v + w]) << text(digits);
      seen[v + w] = 1;
    }
  }
}

void check_inverses(const Layout& layout, const Digits& digits, const std::vector<int64_t>& values) {
  Layout right = right_inverse(layout);
  std::vector<int64_t> back = image(right);
  for (size_t i = 0; i < back.size(); ++i) {
    ASSERT_EQ(value(digits, back[i]), static_cast<int64_t>(i)) << text(digits);
    ASSERT_LT(back[i], layout.size()) << text(digits);
  }
  bool is_injective = !find_collision(filter(layout));  // judged by check_shortening
  if (is_injective) {  // then no function has a larger domain
    bool larger = std::find(values.begin(), values.end(), right.size()) != values.end();
    ASSERT_FALSE(larger) << text(digits) << " " << to_string(right);
  }
  auto left = attempt([&] { return left_inverse(layout); });
  Digits steps = sorted(digits_of(coalesce(layout)));
  bool divides = true;
  for (size_t k = 1; k < steps.size(); ++k) divides = divides && steps[k].stride % steps[k - 1].stride == 0;
  if (!divides) {
    ASSERT_FALSE(left) << text(digits);
  } else if (is_injective) {
    ASSERT_TRUE(left) << text(digits);
  }
  if (!left) return;
  for (size_t i = 0; i < values.size(); ++i) {
    int64_t index = value(digits_of(*left), values[i]);
    ASSERT_EQ(value(digits, index), values[i]) << text(digits) << " " << to_string(*left);
    if (injective(values)) {
      ASSERT_EQ(index, static_cast<int64_t>(i)) << text(digits);
    }
  }
}

std::vector<int64_t> ordered(std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

void check_units(const Layout& layout, const Digits& digits, const std::vector<int64_t>& values, int64_t n) {
  if (auto units = attempt([&] { return upcast(layout, n); })) {
    std::vector<int64_t> expected;
    for (int64_t v : values) expected.push_back(v / n);
    ASSERT_EQ(ordered(image(*units)), ordered(expected)) << text(digits) << " by " << n;
  }
  bool steps = std::any_of(digits.begin(), digits.end(), [](const Digit& digit) { return digit.stride == 1; });
  auto parts = attempt([&] { return downcast(layout, n); });
  if (!steps) {
    ASSERT_FALSE(parts) << text(digits);
  }
  if (!parts) return;
  std::vector<int64_t> expected;
  for (int64_t v : values) {
    for (int64_t k = 0; k < n; ++k) expected.push_back(v * n + k);
  }
  ASSERT_EQ(ordered(image(*parts)), ordered(expected)) << text(digits) << " by " << n;
  ASSERT_EQ(parts->size(), layout.size() * n);
}

void check_unary(const Digits& digits) {
  Layout layout = layout_of(digits);
  std::vector<int64_t> values = image(digits);
  check_shortening(layout, digits, values);
  for (int64_t bound : {int64_t{1}, layout.cosize(), layout.cosize() + 7}) {
    check_complement(layout, digits, values, bound);
  }
  check_inverses(layout, digits, values);
  for (int64_t n : {2, 4}) check_units(layout, digits, values, n);
}

TEST(CuteLaws, UnaryOperationsUpTo64Elements) {
  std::mt19937_64 random(1);
  int64_t visited = 0;
  for (int64_t size = 1; size <= 64; ++size) {
    bool sampled = size > 12 && !long_tests();
    for_each_layout(size, [&](const Digits& digits) {
      if (HasFatalFailure() || (sampled && random() % 250 != 0)) return;
      ++visited;
      check_unary(digits);
    });
  }
  RecordProperty("layouts", static_cast<int>(visited));
  EXPECT_GT(visited, long_tests() ? 4'000'000 : 15'000);
}

/// The law of composition, and of division and products where the operand's complement exists.
void check_pair(const Layout& a, const Layout& b) {
  Digits left = digits_of(a);
  Digits right = digits_of(b);
  std::string shown = to_string(a) + " and " + to_string(b);
  auto both = attempt([&] { return composition(a, b); });
  ASSERT_EQ(both.has_value(), composable(left, right)) << shown;
  if (both) {
    ASSERT_TRUE(compatible(b.shape(), both->shape())) << shown;
    std::vector<int64_t> values = image(*both);
    for (int64_t i = 0; i < b.size(); ++i) ASSERT_EQ(values[i], value(left, value(right, i))) << shown;
  }

  auto rest = attempt([&] { return complement(b, a.size()); });
  auto divided = attempt([&] { return logical_divide(a, b); });
  if (!rest) {
    ASSERT_FALSE(divided) << shown;
  } else {
    Layout whole = make_layout({b, *rest});
    bool fills = filter(b).size() * rest->size() == make_layout({filter(b), *rest}).cosize();
    ASSERT_EQ(divided.has_value(), fills && composable(left, digits_of(whole))) << shown;
    if (divided) {
      ASSERT_EQ(divided->rank(), 2u) << shown;
      ASSERT_TRUE(compatible(b.shape(), divided->mode(0).shape())) << shown;
      std::vector<int64_t> values = image(*divided);
      std::vector<int64_t> indices = image(whole);
      std::vector<char> seen(static_cast<size_t>(a.size()), 0);
      for (size_t i = 0; i < values.size(); ++i) {
        ASSERT_EQ(values[i], value(left, indices[i])) << shown;
        if (indices[i] < a.size()) seen[indices[i]] = 1;
      }
      ASSERT_EQ(std::count(seen.begin(), seen.end(), 1), a.size()) << shown;
    }
  }

  auto repeated = attempt([&] { return logical_product(a, b); });
  auto gaps = attempt([&] { return complement(a, 4 * a.cosize() * (b.cosize() + 1)); });
  ASSERT_EQ(repeated.has_value(), gaps && composable(digits_of(*gaps), right)) << shown;
  if (repeated) {
    ASSERT_EQ(repeated->mode(0), a) << shown;
    ASSERT_TRUE(compatible(b.shape(), repeated->mode(1).shape())) << shown;
    if (injective(image(filter(b)))) {
      ASSERT_TRUE(injective(image(make_layout({filter(a), filter(repeated->mode(1))})))) << shown;
    }
  }

  Layout shared = max_common_layout(a, b);
  std::vector<int64_t> indices = image(shared);
  for (size_t i = 0; i < indices.size(); ++i) {
    ASSERT_EQ(value(left, indices[i]), static_cast<int64_t>(i)) << shown;
    ASSERT_EQ(value(right, indices[i]), static_cast<int64_t>(i)) << shown;
  }
}

TEST(CuteLaws, PairsUpTo8Elements) {
  std::vector<Layout> layouts;
  for (int64_t size = 1; size <= 8; ++size) {
    for_each_layout(size, [&](const Digits& digits) { layouts.push_back(layout_of(digits)); });
  }
  std::mt19937_64 random(2);
  int64_t visited = 0;
  for (const Layout& a : layouts) {
    for (const Layout& b : layouts) {
      if (HasFatalFailure() || (!long_tests() && random() % 80 != 0)) continue;
      ++visited;
      check_pair(a, b);
    }
  }
  EXPECT_GT(visited, long_tests() ? 4'000'000 : 45'000);
}

TEST(CuteLaws, NestedAtRandom) {
  std::mt19937_64 random(3);
  int64_t answered = 0;
  int64_t count = long_tests() ? 1'000'000 : 20'000;
  for (int64_t i = 0; i < count && !HasFatalFailure(); ++i) {
    Layout a = random_layout(random, 96);
    Layout b = random_layout(random, 48);
    answered += attempt([&] { return composition(a, b); }).has_value();
    check_pair(a, b);
    check_unary(digits_of(a));
  }
  EXPECT_GT(answered, count / 10);
}

TEST(CuteLaws, NegativeStridesAtRandom) {
  std::mt19937_64 random(4);
  int64_t answered = 0;
  int64_t count = long_tests() ? 1'000'000 : 20'000;
  for (int64_t i = 0; i < count && !HasFatalFailure(); ++i) {
    Layout a = random_layout(random, 48, true);
    Layout b = random_layout(random, 24, true);
    Digits left = digits_of(a);
    Digits right = digits_of(b);
    auto both = attempt([&] { return composition(a, b); });
    ASSERT_EQ(both.has_value(), composable(left, right)) << to_string(a) << " o " << to_string(b);
    ASSERT_EQ(image(coalesce(a)), image(a)) << to_string(a);
    ASSERT_EQ(!find_collision(a), injective(image(a))) << to_string(a);
    std::vector<int64_t> back = image(right_inverse(a));
    for (size_t k = 0; k < back.size(); ++k) ASSERT_EQ(value(left, back[k]), static_cast<int64_t>(k)) << to_string(a);
    for (int64_t index = -30; index < 60; ++index) ASSERT_EQ(a(index), value(left, index)) << to_string(a);
    if (!both) continue;
    ++answered;
    ASSERT_TRUE(compatible(b.shape(), both->shape()));
    for (int64_t c = 0; c < b.size(); ++c) {
      ASSERT_EQ((*both)(c), value(left, value(right, c))) << to_string(a) << " o " << to_string(b);
    }
  }
  EXPECT_GT(answered, count / 20);
}

TEST(CuteLaws, CoordinatesConvertBothWays) {
  std::mt19937_64 random(5);
  for (int i = 0; i < 5000; ++i) {
    Layout layout = random_layout(random, 200);
    IntTuple shape = layout.shape();
    for (int64_t index = 0; index < layout.size(); ++index) {
      IntTuple natural = idx2crd(IntTuple(index), shape);
      ASSERT_TRUE(congruent(natural, shape));
      ASSERT_EQ(crd2idx(natural, shape), index);
      ASSERT_EQ(layout(natural), layout(index));
    }
    Layout like = make_layout_like(filter_zeros(layout));
    if (auto all = attempt([&] { return idx2crd(IntTuple(0), like.shape(), like.stride()); })) {
      for (int64_t index = 0; index < like.size(); ++index) {
        IntTuple found = idx2crd(IntTuple(like(index)), like.shape(), like.stride());
        ASSERT_EQ(like(found), like(index)) << to_string(like);
      }
    }
  }
}

TEST(CuteLaws, SlicesKeepAndFix) {
  std::mt19937_64 random(6);
  for (int i = 0; i < 20000; ++i) {
    Layout layout = random_layout(random, 200);
    IntTuple coordinate = idx2crd(IntTuple(static_cast<int64_t>(random() % layout.size())), layout.shape());
    IntTuple kept = coordinate;
    size_t all = 0;
    for (int64_t& digit : kept.leaves) {
      if (random() % 2 == 0) digit = kAll, ++all;
    }
    if (all == 0 || all == kept.leaves.size()) continue;
    auto [sliced, offset] = slice_and_offset(kept, layout);
    Layout rest = dice(kept, layout);
    ASSERT_EQ(sliced.size() * rest.size(), layout.size());
    ASSERT_EQ(layout(coordinate), offset + sliced(crd2idx(slice(kept, coordinate), slice(kept, layout.shape()))));
    ASSERT_EQ(offset, rest(crd2idx(dice(kept, coordinate), dice(kept, layout.shape()))));
  }
}

TEST(CuteLaws, TextParsesBack) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20000; ++i) {
    Layout layout = random_layout(random, 4000, true);
    ASSERT_EQ(parse(to_string(layout)), layout) << to_string(layout);
    ASSERT_EQ(parse(to_string(layout)).hash(), layout.hash());
  }
}

TEST(CuteLaws, SharesDivideTheDomain) {
  std::mt19937_64 random(8);
  for (int i = 0; i < 5000; ++i) {
    IntTuple shape = random_layout(random, 300).shape();
    int64_t n = 1 + static_cast<int64_t>(random() % 64);
    Layout shares = domain_distribute(shape, n);
    ASSERT_EQ(n % shares.size(), 0);
    std::vector<int64_t> values = image(shares);
    ASSERT_TRUE(std::is_sorted(values.begin(), values.end()) && injective(values));
    ASSERT_TRUE(attempt([&] { return composition(Layout(shape), shares); })) << to_string(shape) << " " << n;
  }
}

TEST(CuteLaws, EvenDivisionHasNoRest) {
  std::mt19937_64 random(9);
  int even = 0;
  for (int i = 0; i < 20000; ++i) {
    Layout tile = random_layout(random, 24);
    int64_t n = 1 + static_cast<int64_t>(random() % 96);
    auto rest = attempt([&] { return complement(tile, n); });
    bool expected = false;
    if (rest && tile.size() * rest->size() == n) {
      std::vector<int64_t> values = image(make_layout({tile, *rest}));
      expected = injective(values) && *std::max_element(values.begin(), values.end()) == n - 1;
    }
    ASSERT_EQ(evenly_divides(IntTuple(n), Tiler(tile)), expected) << n << " by " << to_string(tile);
    even += expected;
  }
  EXPECT_GT(even, 500);
}

}  // namespace
}  // namespace helve::cute
