// The inline vector against std::vector: random operations across the border between its own room and the heap.
#include "helve/support/inline_vector.h"

#include <gtest/gtest.h>

#include <random>

namespace helve {
namespace {

using Short = InlineVector<int64_t, 3>;

TEST(InlineVector, RandomOperationsAreThoseOfAVector) {
  std::mt19937 random(5);
  for (int round = 0; round < 2000; ++round) {
    Short mine;
    std::vector<int64_t> theirs;
    for (int step = 0; step < 12; ++step) {
      const int64_t value = static_cast<int64_t>(random() % 9);
      const size_t at = theirs.empty() ? 0 : random() % theirs.size();
      switch (random() % 9) {
        case 0:
        case 1:
          mine.push_back(value);
          theirs.push_back(value);
          break;
        case 2:
          mine.insert(mine.begin() + at, value);
          theirs.insert(theirs.begin() + static_cast<ptrdiff_t>(at), value);
          break;
        case 3:
          if (theirs.empty()) break;
          mine.erase(mine.begin() + at);
          theirs.erase(theirs.begin() + static_cast<ptrdiff_t>(at));
          break;
        case 4:
          mine.append(2, value);
          theirs.insert(theirs.end(), 2, value);
          break;
        case 5:
          erase_if(mine, [&](int64_t each) { return each == value; });
          std::erase(theirs, value);
          break;
        case 6: {
          Short copy = mine;
          mine = Short{7, 8, 9, 10};
          mine = copy;  // from the heap to its own room, or back
          break;
        }
        case 7: {
          Short moved = std::move(mine);
          EXPECT_TRUE(mine.empty());
          mine = std::move(moved);
          break;
        }
        default:
          if (theirs.empty()) break;
          mine.push_back(mine[at]);  // an element of its own, also when it grows
          theirs.push_back(int64_t{theirs[at]});
      }
      ASSERT_EQ(mine, theirs) << "round " << round << " step " << step;
      ASSERT_EQ(std::vector<int64_t>(mine.rbegin(), mine.rend()), std::vector<int64_t>(theirs.rbegin(), theirs.rend()));
    }
  }
}

TEST(InlineVector, ComparesByElements) {
  EXPECT_EQ((Short{1, 2}), (Short{1, 2}));
  EXPECT_FALSE((Short{1, 2}) == (Short{1, 2, 3}));
  EXPECT_EQ(Short(std::vector<int64_t>{4, 5, 6, 7}), (std::vector<int64_t>{4, 5, 6, 7}));
  EXPECT_EQ(Short(size_t{4}, int64_t{2}), (Short{2, 2, 2, 2}));
}

}  // namespace
}  // namespace helve
