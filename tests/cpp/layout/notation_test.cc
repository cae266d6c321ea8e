// Text of layouts, its errors, and the refusals of the constructor, word by word.
#include <limits>

#include "oracle.h"

namespace helve {
namespace {

const Axis kM = axes::m();
constexpr const char* kSyntaxHelp =
    "\nhelp: a layout reads like 'S[(8, 4) : (4@laneid, 1)] + R[2 : 4@warpid] + 5@warpid ^ Swizzle(3, 4, 3)'";

TEST(LayoutText, PrintsAndParsesTheExample) {
  std::string text = "S[(8, 2, 4, 2) : (4@laneid, 1@warpid, 1@laneid, 1)] + R[2 : 4@warpid] + 5@warpid";
  Layout layout({{8, 4, axes::laneid()}, {2, 1, axes::warpid()}, {4, 1, axes::laneid()}, {2, 1, kM}},
                {{2, 4, axes::warpid()}}, {{axes::warpid(), 5}});
  EXPECT_EQ(to_string(layout), text);
  EXPECT_EQ(parse_layout(text), layout);
}

TEST(LayoutText, OtherSpellings) {
  Layout layout = parse_layout("S[(8,):(-2@m,)]+R[2:1@x]+R[(3,):(1@y)] + 3 - 1@m + 0@x^Swizzle(3,4,-3)");
  EXPECT_EQ(to_string(layout), "S[8 : -2] + R[(2, 3) : (1@x, 1@y)] + 0@x + 2 ^ Swizzle(3, 4, -3)");
  EXPECT_EQ(parse_layout(to_string(layout)), layout);
  EXPECT_EQ(parse_layout(" S [ ( ) : ( ) ] "), Layout());
  EXPECT_EQ(to_string(Layout()), "S[() : ()]");
  EXPECT_EQ(parse_layout("S[2 : 1] + -5@laneid").offset(axes::laneid()), -5);
  EXPECT_EQ(parse_layout("S[1 : -9223372036854775808]").shard()[0].stride, std::numeric_limits<int64_t>::min());
  EXPECT_EQ(to_string(Point{{kM, 0}}), "0");
  EXPECT_EQ(to_string(Point{{kM, 3}, {axes::x(), 1}}), "1@x + 3");
  EXPECT_EQ(to_string(Iter{4, 2, axes::tx()}), "4:2@tx");
}

TEST(LayoutText, SyntaxErrorsGiveTheColumn) {
  struct Case {
    const char* text;
    int column;
    const char* reason;
  };
  for (const Case& c :
       {Case{"", 1, "expected 'S'"}, Case{"T[1:1]", 1, "expected 'S'"}, Case{"S(1:1)", 2, "expected '['"},
        Case{"S[1 1]", 5, "expected ':'"}, Case{"S[a : 1]", 3, "expected an integer"},
        Case{"S[(1, 2) : 1]", 12, "expected 2 strides, 1 are given"}, Case{"S[(1 2) : 1]", 6, "expected ')'"},
        Case{"S[1 : 1", 8, "expected ']'"}, Case{"S[1 : 1@]", 9, "expected the name of an axis"},
        Case{"S[1 : 1] * 2", 10, "expected '+', '-', '^' or the end"},
        Case{"S[1 : 9223372036854775808]", 7, "the number does not fit in 64 bits"},
        Case{"S[1 : 1] ^ Swizle(1, 1, 1)", 12, "expected 'Swizzle'"},
        Case{"S[1 : 1] ^ Swizzle(99, 1, 1)", 20, "a swizzle's numbers are between -64 and 64"}}) {
    EXPECT_EQ(oracle::refusal<LayoutError>([&] { parse_layout(c.text); }),
              "error[HV0502]: layout text '" + std::string(c.text) + "', column " + std::to_string(c.column) + ": " +
                  c.reason + kSyntaxHelp);
  }
  EXPECT_EQ(oracle::refusal<LayoutError>([] { parse_layout("S[2 : 1@nowhere]"); }),
            "error[HV0503]: layout text 'S[2 : 1@nowhere]', column 9: 'nowhere' is not an axis\n"
            "help: make it first: helve.axis(\"nowhere\", kind)");
}

TEST(LayoutText, NoInputBreaksTheParser) {
  std::mt19937 random(5);
  const std::string letters = "SR[](),:+-@^ 0123456789mxlaneidSwizzle";
  std::string seed = "S[(8, 2) : (4@laneid, 1)] + R[2 : 4@warpid] + 5@warpid ^ Swizzle(2, 1, 3)";
  for (int k = 0; k < 20000; ++k) {
    std::string text = seed;
    for (int edits = 0; edits < 1 + k % 4; ++edits) {
      text[random() % text.size()] = letters[random() % letters.size()];
    }
    try {
      Layout layout = parse_layout(text);
      ASSERT_EQ(parse_layout(to_string(layout)), layout) << text;
    } catch (const LayoutError&) {
    }
  }
}

TEST(LayoutErrors, Axes) {
  EXPECT_EQ(oracle::refusal<LayoutError>([] { Axis::make("laneid", AxisKind::Memory); }),
            "error[HV0500]: axis 'laneid' is a thread axis, it cannot also be a memory axis\n"
            "help: choose another name");
  EXPECT_EQ(oracle::refusal<LayoutError>([] { Axis::make("2x", AxisKind::Device); }),
            "error[HV0501]: '2x' cannot name an axis\n"
            "help: an axis name is a letter or '_' followed by letters, digits and '_'");
}

TEST(LayoutErrors, Construction) {
  int64_t big = int64_t{1} << 62;
  EXPECT_EQ(oracle::refusal<ShapeError>([] { Layout({{2, 1, kM}, {0, 1, kM}}); }),
            "error[HV0510]: iter 1 of the shard has extent 0\nhelp: an extent is 1 or more");
  EXPECT_EQ(oracle::refusal<ShapeError>([] { Layout({}, {{-3, 1, kM}}); }),
            "error[HV0510]: iter 0 of the replica has extent -3\nhelp: an extent is 1 or more");
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { Layout({{big, 0, kM}, {2, 0, kM}}); }),
            "error[HV0550]: the number of elements of the shard does not fit in 64 bits\n"
            "help: use smaller extents and strides");
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { Layout({{3, big, kM}}); }),
            "error[HV0550]: a coordinate on axis 'm' does not fit in 64 bits\nhelp: use smaller extents and strides");
  Axis x = axes::x();
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { Layout({{2, big, x}, {2, -big, x}, {2, -big, x}}); }),
            "error[HV0550]: the span of axis 'x' does not fit in 64 bits\nhelp: use smaller extents and strides");
  auto swizzle = [](Swizzle s) { return oracle::refusal<UnsupportedError>([&] { Layout({}, {}, {}, s); }); };
  std::string help = "\nhelp: 0 <= bits <= |shift|, 0 <= base, and bits + base + |shift| is at most 62";
  EXPECT_EQ(swizzle({3, 0, 2}),
            "error[HV0555]: Swizzle(3, 0, 2) is not a swizzle: its source and target bits overlap" + help);
  EXPECT_EQ(swizzle({-1, 0, 2}),
            "error[HV0555]: Swizzle(-1, 0, 2) is not a swizzle: bits and base are not negative" + help);
  EXPECT_EQ(swizzle({3, 50, 10}),
            "error[HV0555]: Swizzle(3, 50, 10) is not a swizzle: its period does not fit in 64 bits" + help);
}

TEST(LayoutErrors, Coordinates) {
  Layout layout({{6, 1, kM}});
  std::string help = "\nhelp: coordinate d is at least 0 and below extent d";
  EXPECT_EQ(oracle::refusal<BoundsError>([&] { layout.apply(6); }),
            "error[HV0540]: coordinate (6,) is outside shape (6,)" + help);
  EXPECT_EQ(oracle::refusal<BoundsError>([&] { layout.apply({1, 3}, {2, 3}); }),
            "error[HV0540]: coordinate (1, 3) is outside shape (2, 3)" + help);
  EXPECT_EQ(oracle::refusal<ShapeError>([&] { layout.apply({1}, {2, 3}); }),
            "error[HV0513]: flatten: coordinate (1,) and shape (2, 3) have different ranks\n"
            "help: give one entry for each dimension");
  EXPECT_EQ(oracle::refusal<ShapeError>([&] { layout.inverse({{kM, 0}}, {7}); }),
            "error[HV0511]: shape (7,) has 7 elements, the layout has 6\n"
            "help: a layout admits every shape with as many elements as its shard");
}

TEST(LayoutErrors, SearchesAreBounded) {
  Layout many({}, {{int64_t{1} << 23, 1, kM}});
  EXPECT_EQ(oracle::refusal<UnsupportedError>([&] { many.apply(0); }),
            "error[HV0551]: the list of replicas of S[() : ()] + R[8388608 : 1] needs more than 4194304 steps\n"
            "help: use a layout with fewer overlapping iters");
}

}  // namespace
}  // namespace helve
