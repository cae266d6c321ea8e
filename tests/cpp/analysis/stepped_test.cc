// When equal subscripts mean equal values of a variable, against all values of small ones.
#include "helve/analysis/stepped.h"

#include <gtest/gtest.h>

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/text.h"

namespace helve {
namespace {

class SteppedBy : public ::testing::Test {
 protected:
  std::string text(const Expr& e) const {
    const std::optional<Stepped> found = stepped_by(e, x_.get());
    return found ? std::to_string(found->step) + ", " + to_text(found->rest) : "nothing";
  }
  VarRef x_ = make_var("x"), y_ = make_var("y");
  Expr x = x_, y = y_;
};

TEST_F(SteppedBy, TheRestIsWhatTheVariableDoesNotChange) {
  EXPECT_EQ(text(x), "1, 0");
  EXPECT_EQ(text((x * int_imm(2) + y) * int_imm(4) + int_imm(3)), "8, y * 4 + 3");
  EXPECT_EQ(text(y - x), "-1, y");
}

TEST_F(SteppedBy, OtherFormsHaveNone) {
  EXPECT_EQ(text(y), "nothing");
  EXPECT_EQ(text(x - x), "nothing");
  EXPECT_EQ(text(x * y), "nothing");
  EXPECT_EQ(text(x + floor_div(x, int_imm(2))), "nothing");
}

TEST_F(SteppedBy, EqualValuesAreForcedWhereNoOthersMeet) {
  for (int64_t step = -4; step <= 4; ++step) {
    if (step == 0) continue;
    for (int64_t low = -6; low <= 6; ++low) {
      for (int64_t high = low; high <= 6; ++high) {
        bool others_meet = false;
        for (int64_t distance = -20; distance <= 20; ++distance) {
          const int64_t difference = -step * distance;  // of the rests, where the subscripts are equal
          others_meet |= distance != 0 && low <= difference && difference <= high;
        }
        const bool may_be_equal = low <= 0 && 0 <= high;
        const bool forced = forces_equal(step, {low, high});
        EXPECT_FALSE(forced && others_meet) << step << " " << low << " " << high;
        EXPECT_TRUE(forced || others_meet || !may_be_equal) << step << " " << low << " " << high;
      }
    }
  }
  EXPECT_FALSE(forces_equal(4, {std::nullopt, 0}));
  EXPECT_FALSE(forces_equal(INT64_MIN, {0, 0}));
}

}  // namespace
}  // namespace helve
