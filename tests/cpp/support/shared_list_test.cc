// What one copy of a list does, no other copy may see, whichever of them was there first.
#include "helve/support/shared_list.h"

#include <gtest/gtest.h>

#include <random>
#include <string>

namespace helve {
namespace {

using Items = std::vector<int>;

Items items(const SharedList<int>& list) { return Items(list.begin(), list.end()); }

TEST(SharedList, CopiesGoTheirOwnWays) {
  SharedList<int> first;
  EXPECT_TRUE(first.empty());
  first.append(1);
  SharedList<int> second = first;
  first.append(2);
  second.append(3);
  second.append(4);
  EXPECT_EQ(items(first), (Items{1, 2}));
  EXPECT_EQ(items(second), (Items{1, 3, 4}));
}

TEST(SharedList, ReplacesInOneCopyOnly) {
  SharedList<int> first;
  for (int i = 0; i < 3; ++i) first.append(i);
  SharedList<int> second = first;
  second.replace(0, 7);
  EXPECT_EQ(items(first), (Items{0, 1, 2}));
  EXPECT_EQ(items(second), (Items{7, 1, 2}));
}

TEST(SharedList, IsAListOfEachCopy) {
  std::mt19937 random(1);
  std::vector<SharedList<int>> lists(1);
  std::vector<Items> expected(1);
  for (int step = 0; step < 2000; ++step) {
    const size_t at = random() % lists.size();
    switch (random() % 3) {
      case 0:
        lists.push_back(SharedList<int>(lists[at]));
        expected.push_back(Items(expected[at]));
        break;
      case 1:
        lists[at].append(step);
        expected[at].push_back(step);
        break;
      default:
        if (expected[at].empty()) break;
        lists[at].replace(step % expected[at].size(), step);
        expected[at][step % expected[at].size()] = step;
    }
  }
  for (size_t i = 0; i < lists.size(); ++i) EXPECT_EQ(items(lists[i]), expected[i]);
}

TEST(SharedList, ElementsStayWhereTheyAreWhileACopyGrows) {
  SharedList<std::string> list;
  for (int i = 0; i < 5; ++i) list.append(std::to_string(i));
  const SharedList<std::string> before = list;
  std::string seen;
  for (const std::string& each : before) {
    for (int i = 0; i < 100; ++i) list.append("more");
    seen += each;
  }
  EXPECT_EQ(seen, "01234");
  EXPECT_EQ(list.size(), 505u);
}

}  // namespace
}  // namespace helve
