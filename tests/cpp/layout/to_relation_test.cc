// The layout library against isl.
// Two independent ways to the same facts: injectivity with its witness, and equality of maps.
#include "helve/layout/to_relation.h"

#include "oracle.h"

namespace helve {
namespace {

TEST(ToRelation, InjectivityAgreesWithTheLibrary) {
  oracle::RandomLayouts random(11);
  int injective = 0, asked = 0;
  while (asked < 100) {
    const Layout layout = random.layout(3, 3, asked % 5 == 0);
    if (!layout.replica().empty() && asked % 3) continue;  // replicas seldom stay apart
    ++asked;
    ExactEngine engine;
    const Answer answer = to_relation(engine, layout, {layout.size()}).is_injective();
    if (answer.verdict == Verdict::Unknown) {
      EXPECT_FALSE(layout.swizzle().identity()) << to_string(layout);  // bits cost more than the budget holds
      continue;
    }
    ASSERT_EQ(to_string(answer.verdict), layout.is_injective() ? "proved" : "refuted") << to_string(layout);
    injective += layout.is_injective();
    if (layout.is_injective()) continue;
    const oracle::Places a = oracle::points(layout, answer.witness.at(0).second);
    const oracle::Places b = oracle::points(layout, answer.other.at(0).second);
    EXPECT_NE(answer.witness.at(0).second, answer.other.at(0).second);
    EXPECT_TRUE(std::any_of(a.begin(), a.end(), [&](const oracle::Place& p) { return b.contains(p); }))
        << to_string(layout);
  }
  EXPECT_GT(injective, 5);
  EXPECT_LT(injective, 95);
}

TEST(ToRelation, EqualityAgreesWithTheLibrary) {
  oracle::RandomLayouts random(12);
  int equal = 0;
  for (int k = 0; k < 100; ++k) {
    const Layout a = random.layout(3, 3, k % 5 == 0);
    // The canonical form is equal; another layout of the same size seldom is.
    Layout b = a.canonicalize();
    for (int tries = 0; k % 2 && tries < 50; ++tries) {
      b = random.layout(3, 3, k % 5 == 0);
      if (b.size() == a.size()) break;
    }
    if (a.size() != b.size()) continue;
    std::set<Axis> used(a.axes().begin(), a.axes().end());
    used.insert(b.axes().begin(), b.axes().end());
    const std::vector<Axis> axes(used.begin(), used.end());
    ExactEngine engine;
    const Answer answer = to_relation(engine, a, {a.size()}, axes).is_equal(to_relation(engine, b, {b.size()}, axes));
    if (answer.verdict == Verdict::Unknown) {
      EXPECT_FALSE(a.swizzle().identity() && b.swizzle().identity()) << to_string(a);
      continue;
    }
    ASSERT_EQ(to_string(answer.verdict), a.equivalent(b) ? "proved" : "refuted")
        << to_string(a) << "  " << to_string(b);
    equal += a.equivalent(b);
  }
  EXPECT_GT(equal, 30);
  EXPECT_LT(equal, 98);
}

TEST(ToRelation, ATiledMatrixOverItsTwoCoordinates) {
  ExactEngine engine;
  const Layout tiled({{4, 4096}, {32, 32}, {4, 1024}, {32, 1}}), plain(Iters{{128 * 128, 1}});
  EXPECT_EQ(to_relation(engine, tiled, {128, 128}).is_injective().verdict, Verdict::Proved);
  EXPECT_EQ(to_relation(engine, tiled, {128, 128}).is_equal(to_relation(engine, plain, {128, 128})).verdict,
            Verdict::Refuted);
}

TEST(ToRelation, AShapeThatIsNotAdmittedIsRefused) {
  ExactEngine engine;
  EXPECT_THROW(to_relation(engine, Layout(Iters{{4, 1}}), {3}), ShapeError);
}

}  // namespace
}  // namespace helve
