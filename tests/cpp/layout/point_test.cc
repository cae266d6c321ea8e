// Points against std::map, tables of points against sorted sets, and the order of axes.
#include "helve/layout/point.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace helve {
namespace {

/// Two of them agree in kind and in the first seven letters, so that only their whole names order them.
std::vector<Axis> some_axes() {
  return {axes::x(),
          axes::laneid(),
          axes::tx(),
          axes::m(),
          axes::reg(),
          Axis::make("placement_b", AxisKind::Memory),
          Axis::make("placement_a", AxisKind::Memory)};
}

TEST(LayoutPoint, AxesAreOrderedByKindAndName) {
  for (Axis a : some_axes()) {
    for (Axis b : some_axes()) {
      EXPECT_EQ(a < b, std::pair(a.kind(), a.name()) < std::pair(b.kind(), b.name())) << a.name() << " " << b.name();
      EXPECT_EQ(a == b, a.name() == b.name());
    }
  }
  EXPECT_EQ(Axis(), axes::m());
  EXPECT_EQ(Axis::find("laneid"), axes::laneid());
}

TEST(LayoutPoint, IsAMapFromAxes) {
  std::mt19937 random(3);
  for (int round = 0; round < 500; ++round) {
    Point mine;
    std::map<Axis, int64_t> theirs;
    for (int step = 0; step < 10; ++step) {
      const Axis axis = some_axes()[random() % some_axes().size()];
      const auto value = static_cast<int64_t>(random() % 5) - 2;
      if (random() % 4 == 0) {
        mine.erase(axis);
        theirs.erase(axis);
      } else {
        mine[axis] += value;
        theirs[axis] += value;
      }
      ASSERT_EQ(mine.size(), theirs.size());
      auto expected = theirs.begin();
      for (const auto& [at, coordinate] : mine) {
        ASSERT_EQ(at, expected->first);
        ASSERT_EQ(coordinate, expected->second);
        ++expected;
      }
      ASSERT_EQ(mine.count(axis), theirs.count(axis));
      ASSERT_EQ(mine.at(axis), theirs.count(axis) ? theirs.at(axis) : 0);
    }
  }
}

TEST(LayoutPoint, TablesSortAndForgetRepetitions) {
  std::mt19937 random(4);
  for (int round = 0; round < 500; ++round) {
    Points points(Axes{axes::laneid(), axes::m()});
    std::set<std::pair<int64_t, int64_t>> expected;
    points.resize(random() % 12 + 1);
    for (size_t i = 0; i < points.size(); ++i) {
      for (int a = 0; a < 2; ++a) points.row(i)[a] = static_cast<int64_t>(random() % 3) - 1;
      expected.insert({points.row(i)[0], points.row(i)[1]});
    }
    points.sort();
    std::vector<Point> listed;
    for (const auto& [lane, address] : expected) listed.push_back({{axes::laneid(), lane}, {axes::m(), address}});
    ASSERT_EQ(points, listed);
  }
  Points origin{Axes{}};
  origin.resize(3);
  origin.sort();
  EXPECT_EQ(origin, std::vector<Point>{Point{}});
}

}  // namespace
}  // namespace helve
