// Axe and CuTe layouts agree on coordinates, both ways.
#include "helve/layout/from_cute.h"

#include "oracle.h"

namespace helve {
namespace {

const Axis kM = axes::m();

int64_t address(const Layout& layout, const std::vector<int64_t>& coordinate, const std::vector<int64_t>& shape) {
  return layout.apply(coordinate, shape).front().at(kM);
}

int64_t value(const std::variant<cute::Layout, cute::ComposedLayout>& layout, const std::vector<int64_t>& coordinate) {
  cute::IntTuple tuple = cute::IntTuple::flat(coordinate.data(), coordinate.data() + coordinate.size());
  return std::visit([&](const auto& l) { return l(tuple); }, layout);
}

TEST(LayoutCute, ModesBecomeDimensions) {
  auto from = [](const char* text) { return to_string(from_cute(cute::parse(text))); };
  EXPECT_EQ(from("(4,8):(1,4)"), "S[(4, 8) : (1, 4)]");
  EXPECT_EQ(from("(4,(2,3)):(6,(1,2))"), "S[(4, 3, 2) : (6, 2, 1)]");
  EXPECT_EQ(from("((2,3),4):((1,2),6)"), "S[(3, 2, 4) : (2, 1, 6)]");
  EXPECT_EQ(from("8:2"), "S[8 : 2]");
  EXPECT_EQ(from("((2,(2,2)),3):((1,(4,2)),8)"), "S[(2, 2, 2, 3) : (2, 4, 1, 8)]");
}

TEST(LayoutCute, RandomLayoutsAgreeAtEveryCoordinate) {
  oracle::RandomLayouts random(31);
  int answered = 0;
  for (int k = 0; k < 3000; ++k) {
    Iters shard;
    for (int64_t n = random.number(1, 4); n > 0; --n) shard.push_back({random.number(1, 4), random.number(-3, 9), kM});
    Swizzle swizzle{};
    Point offset;
    if (random.number(0, 1)) {
      swizzle = {1, static_cast<int>(random.number(0, 2)), random.number(0, 1) ? 2 : -1};
      if (random.number(0, 1)) offset[kM] = random.number(-9, 30);
    }
    Layout layout(shard, {}, offset, swizzle);
    std::vector<int64_t> divisors;
    for (int64_t d = 1; d <= layout.size(); ++d) {
      if (layout.size() % d == 0) divisors.push_back(d);
    }
    int64_t outer = divisors[static_cast<size_t>(random.number(0, static_cast<int64_t>(divisors.size()) - 1))];
    std::vector<int64_t> shape{outer, layout.size() / outer};
    std::variant<cute::Layout, cute::ComposedLayout> made;
    try {
      made = to_cute(layout, shape);
    } catch (const DivisibilityError&) {
      continue;
    }
    ++answered;
    for (int64_t i = 0; i < shape[0]; ++i) {
      for (int64_t j = 0; j < shape[1]; ++j)
        ASSERT_EQ(value(made, {i, j}), address(layout, {i, j}, shape)) << to_string(layout);
    }
    Layout back = std::visit([](const auto& l) { return from_cute(l); }, made);
    ASSERT_EQ(oracle::image(back), oracle::image(layout)) << to_string(layout) << " became " << to_string(back);
    // One dimension: the flat indices agree as well.
    auto flat = to_cute(layout, {layout.size()});
    for (int64_t x = 0; x < layout.size(); ++x) {
      int64_t found = std::visit([&](const auto& l) { return l(x); }, flat);
      ASSERT_EQ(found, address(layout, {x}, {layout.size()})) << to_string(layout);
    }
  }
  EXPECT_GT(answered, 1000);
}

TEST(LayoutCute, Spellings) {
  auto to = [](const char* text, std::vector<int64_t> shape) {
    return std::visit([](const auto& l) { return cute::to_string(l); }, to_cute(parse_layout(text), shape));
  };
  EXPECT_EQ(to("S[(8, 4) : (4, 1)]", {8, 4}), "(8,4):(4,1)");
  EXPECT_EQ(to("S[32 : 1]", {32}), "32:1");
  EXPECT_EQ(to("S[(4, 8) : (1, 4)]", {32}), "((8,4),):((4,1),)");
  EXPECT_EQ(to("S[() : ()]", {}), "1:0");
  EXPECT_EQ(to("S[(8, 8) : (8, 1)] ^ Swizzle(1, 0, 3)", {8, 8}), "SW_1_0_3 o 0 o (8,8):(8,1)");
}

TEST(LayoutCute, Refusals) {
  std::string help = "\nhelp: convert the part on the memory axis: storage(), without replicas and offset";
  auto to = [](const char* text) {
    Layout layout = parse_layout(text);
    return oracle::refusal<UnsupportedError>([&] { to_cute(layout, {layout.size()}); });
  };
  EXPECT_EQ(to("S[4 : 1] + R[2 : 4]"), "error[HV0566]: S[4 : 1] + R[2 : 4] has no CuTe form: it has replicas" + help);
  EXPECT_EQ(to("S[4 : 1] + 4"), "error[HV0566]: S[4 : 1] + 4 has no CuTe form: it has an offset" + help);
  EXPECT_EQ(to("S[4 : 1] + 4@x"), "error[HV0566]: S[4 : 1] + 4@x has no CuTe form: it has an offset on axis x" + help);
  EXPECT_EQ(to("S[4 : 1@x]"),
            "error[HV0566]: S[4 : 1@x] has no CuTe form: iter 4:1@x is on another axis than m" + help);
  cute::ComposedLayout two =
      cute::composition(Swizzle{1, 0, 1}, cute::composition(Swizzle{1, 0, 2}, cute::Layout(8, 1)));
  EXPECT_THROW(from_cute(two), UnsupportedError);
}

}  // namespace
}  // namespace helve
