// Shapes as words.
// Every room that names a shape in a message uses this spelling, which is Python's.
#include "helve/support/text.h"

#include <gtest/gtest.h>

#include <vector>

namespace helve {
namespace {

TEST(ShapeText, IsATupleOfPython) {
  EXPECT_EQ(shape_text(std::vector<int64_t>{}), "()");
  EXPECT_EQ(shape_text(std::vector<int64_t>{4}), "(4,)");
  EXPECT_EQ(shape_text(std::vector<int64_t>{4, 0, -1}), "(4, 0, -1)");
}

}  // namespace
}  // namespace helve
