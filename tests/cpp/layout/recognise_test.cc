// Recovery of operands: what is found satisfies its law, and nothing is missed that a search over small layouts finds.
#include "helve/layout/recognise.h"

#include "oracle.h"

namespace helve {
namespace {

const Axis kLane = axes::laneid();
const Axis kM = axes::m();

using Answer = std::optional<Layout>;

struct Question {
  const char* name;
  Answer (*ask)(const Layout&, const std::vector<int64_t>&, const Layout&, const std::vector<int64_t>&);
  bool known_first;  ///< the known operand is the first of the product
  bool scaled;
};

const Question kQuestions[] = {{"outer_of", outer_of, false, true},
                               {"inner_of", inner_of, true, true},
                               {"left_of", left_of, false, false},
                               {"right_of", right_of, true, false}};

Layout combine(const Question& q, const Layout& first, const std::vector<int64_t>& first_shape, const Layout& second,
               const std::vector<int64_t>& second_shape) {
  return q.scaled ? tile(first, first_shape, second, second_shape)
                  : direct_sum(first, first_shape, second, second_shape);
}

bool satisfies(const Question& q, const Layout& whole, const Layout& known, const std::vector<int64_t>& known_shape,
               const Layout& found, const std::vector<int64_t>& found_shape) {
  Layout result = q.known_first ? combine(q, known, known_shape, found, found_shape)
                                : combine(q, found, found_shape, known, known_shape);
  return oracle::image(result) == oracle::image(whole);
}

std::vector<int64_t> own_shape(const Layout& layout) {
  std::vector<int64_t> shape{1, 1};
  for (size_t k = 0; k < layout.shard().size(); ++k) shape[std::min<size_t>(k, 1)] *= layout.shard()[k].extent;
  return shape;
}

TEST(LayoutRecognise, OperandsOfRandomProducts) {
  oracle::RandomLayouts random(9);
  int swizzled = 0;
  for (int k = 0; k < (oracle::long_tests() ? 50000 : 3000); ++k) {
    Layout first = random.layout(3, 3, false);
    Layout second = random.layout(2, 3, k % 4 == 0);
    for (const Question& q : kQuestions) {
      bool plain = second.swizzle().identity();
      if (!plain && (q.known_first || !q.scaled || second.span(kM) % second.swizzle().period() != 0)) continue;
      swizzled += !plain;
      auto first_shape = own_shape(first);
      auto second_shape = own_shape(second);
      Layout whole = combine(q, first, first_shape, second, second_shape);
      std::vector<int64_t> whole_shape{first_shape[0] * second_shape[0], first_shape[1] * second_shape[1]};
      const Layout& known = q.known_first ? first : second;
      auto known_shape = q.known_first ? first_shape : second_shape;
      auto found_shape = q.known_first ? second_shape : first_shape;
      Answer found = q.ask(whole, whole_shape, known, known_shape);
      ASSERT_TRUE(found.has_value()) << q.name << " " << to_string(whole) << " known " << to_string(known);
      ASSERT_TRUE(satisfies(q, whole, known, known_shape, *found, found_shape))
          << q.name << " " << to_string(whole) << " known " << to_string(known) << " gives " << to_string(*found);
    }
  }
  EXPECT_GT(swizzled, 0);
}

TEST(LayoutRecognise, NothingIsMissedAmongSmallLayouts) {
  std::vector<std::pair<int64_t, Axis>> steps = {{0, kM}, {1, kM}, {2, kM}, {3, kM}, {-1, kM}, {1, kLane}, {2, kLane}};
  std::vector<Iters> replicas = {{}, {{2, 1, kM}}, {{2, 2, kM}}, {{3, 1, kM}}, {{2, 1, kLane}}};
  std::vector<Layout> operands;
  oracle::for_each_shard(2, steps, [&](const Iters& shard) {
    for (const auto& replica : replicas) {
      for (int64_t offset : {0, 1}) operands.push_back(Layout(shard, replica, {{kM, offset}}));
    }
  });
  std::vector<Layout> wholes;
  std::vector<Iters> whole_replicas = {{}, {{2, 2, kM}}, {{4, 1, kM}}, {{2, 1, kM}, {2, 3, kM}}};
  oracle::for_each_shard(4, steps, [&](const Iters& shard) {
    for (const auto& replica : whole_replicas) {
      for (int64_t offset : {0, 2}) wholes.push_back(Layout(shard, replica, {{kM, offset}}));
    }
  });
  for (const Question& q : kQuestions) {
    // Every whole that some small operand makes with each known one.
    std::set<std::pair<oracle::Image, size_t>> products;
    for (size_t k = 0; k < operands.size(); ++k) {
      for (const Layout& other : operands) {
        const Layout& first = q.known_first ? operands[k] : other;
        const Layout& second = q.known_first ? other : operands[k];
        Layout whole = combine(q, first, {2}, second, {2});
        products.insert({oracle::image(whole), k});
      }
    }
    int found_count = 0;
    int none_count = 0;
    for (const Layout& whole : wholes) {
      oracle::Image image = oracle::image(whole);
      for (size_t k = 0; k < operands.size(); ++k) {
        Answer found = q.ask(whole, {4}, operands[k], {2});
        (found ? found_count : none_count) += 1;
        if (found) {
          ASSERT_TRUE(satisfies(q, whole, operands[k], {2}, *found, {2}))
              << q.name << " " << to_string(whole) << " known " << to_string(operands[k]) << " " << to_string(*found);
        } else {
          ASSERT_FALSE(products.count({image, k}))
              << q.name << " " << to_string(whole) << " known " << to_string(operands[k]);
        }
      }
    }
    EXPECT_GT(found_count, 0) << q.name;
    EXPECT_GT(none_count, 0) << q.name;
  }
}

TEST(LayoutRecognise, InterleavingInTheWrongOrderIsNoTile) {
  EXPECT_EQ(outer_of(Layout({{2, 1, kM}, {2, 2, kM}}), {4}, Layout({{2, 1, kM}}), {2}), std::nullopt);
  EXPECT_EQ(outer_of(Layout({{2, 2, kM}, {2, 1, kM}}), {4}, Layout({{2, 1, kM}}), {2}), Layout({{2, 1, kM}}));
}

TEST(LayoutRecognise, TheRecoveredOffsetIsDividedByTheSpan) {
  Layout whole({{2, 4, kM}, {4, 1, kM}}, {{2, 8, kM}}, {{kM, 12}});
  Answer outer = outer_of(whole, {8}, Layout({{4, 1, kM}}), {4});
  ASSERT_TRUE(outer.has_value());
  EXPECT_EQ(to_string(*outer), "S[2 : 1] + R[2 : 2] + 3");
  EXPECT_EQ(outer_of(Layout({{8, 1, kM}}, {}, {{kM, 2}}), {8}, Layout({{4, 1, kM}}), {4}), std::nullopt);
}

TEST(LayoutRecognise, MergedReplicasAreTakenApart) {
  Layout whole({{2, 1, kLane}}, {{6, 1, kM}});
  Answer outer = outer_of(whole, {2}, Layout({}, {{2, 1, kM}}), {1});
  ASSERT_TRUE(outer.has_value());
  EXPECT_EQ(to_string(*outer), "S[2 : 1@laneid] + R[3 : 1]");
}

TEST(LayoutRecognise, StridedAtomsOfThePaper) {
  Layout sixteen({{16, 1, kM}});
  Layout right({{2, 4, kM}, {2, 1, kM}});
  Answer left = left_of(sixteen, {4, 4}, right, {2, 2});
  ASSERT_TRUE(left.has_value());
  EXPECT_EQ(to_string(*left), "S[(2, 2) : (8, 2)]");
  EXPECT_EQ(outer_of(sixteen, {4, 4}, right, {2, 2}), std::nullopt);
}

TEST(LayoutRecognise, ShapesThatDoNotDivideHaveNoAnswer) {
  Layout six({{6, 1, kM}});
  EXPECT_EQ(outer_of(six, {6}, Layout({{4, 1, kM}}), {4}), std::nullopt);
  EXPECT_EQ(inner_of(six, {2, 3}, Layout({{3, 1, kM}}), {3, 1}), std::nullopt);
}

TEST(LayoutRecognise, Refusals) {
  Layout six({{6, 1, kM}});
  Layout swizzled({{64, 1, kM}}, {}, {}, Swizzle{1, 0, 1});
  EXPECT_EQ(oracle::refusal<ShapeError>([&] { outer_of(six, {2, 3}, six, {6}); }),
            "error[HV0513]: outer_of: shape (2, 3) and shape (6,) have different ranks\n"
            "help: give one entry for each dimension");
  EXPECT_EQ(oracle::refusal<ShapeError>([&] { left_of(six, {7}, six, {6}); }),
            "error[HV0511]: shape (7,) has 7 elements, the layout has 6\n"
            "help: a layout admits every shape with as many elements as its shard");
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { inner_of(swizzled, {64}, Layout({{2, 1, kM}}), {2}); }),
            "error[HV0552]: inner_of: the whole operand S[64 : 1] ^ Swizzle(1, 0, 1) is swizzled\n"
            "help: swizzle the result instead");
  EXPECT_THROW(outer_of(swizzled, {64}, Layout({{2, 1, kM}}), {2}), UnsupportedError);
  EXPECT_THROW(right_of(six, {6}, Layout({{4, 1, kM}}, {}, {}, Swizzle{1, 0, 1}), {4}), UnsupportedError);
}

}  // namespace
}  // namespace helve
