// What does not fit in 64 bits, where Python has no door: meshes beyond its limits.
#include <gtest/gtest.h>

#include "helve/layout/distribution.h"
#include "oracle.h"

namespace helve {
namespace {

using oracle::refusal;

TEST(LayoutOverflow, DevicesOfALevel) {
  const std::vector<MeshAxis> mesh = {{Axis::make("huge_rows", AxisKind::Device), int64_t{1} << 40},
                                      {Axis::make("huge_columns", AxisKind::Device), int64_t{1} << 40}};
  EXPECT_EQ(refusal<UnsupportedError>([&] { distribute({"x -> x", "x -> x"}, {4}, mesh); }),
            "error[HV0550]: the number of devices does not fit in 64 bits\nhelp: use smaller extents and strides");
}

}  // namespace
}  // namespace helve
