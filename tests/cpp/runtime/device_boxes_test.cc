// Boxes on a GPU, which the fake driver stands for, against the same boxes on the CPU.
// The kernels themselves run on GPUs alone; here their parameters are proved, for all the forms that boxes have.
#include "helve/runtime/cuda/device_boxes.h"

#include <gtest/gtest.h>

#include <numeric>
#include <random>

#include "helve/runtime/box_moves.h"
#include "helve/support/diagnostic.h"
#include "runtime/fake_driver.h"

namespace helve::runtime::cuda {
namespace {

constexpr DLDataType kInt16 = {kDLInt, 16, 1}, kFloat16 = {kDLFloat, 16, 1}, kInt32 = {kDLInt, 32, 1};

class DeviceBoxesTest : public FakeDriverTest {
 protected:
  DeviceBoxesTest() {
    // The compiler of CUDA C is asked once; a machine without one proves nothing here.
    try {
      DeviceBoxes probe(kInt32, std::nullopt);
      int from = 0, to = 0;
      probe.add_source(reinterpret_cast<const std::byte*>(&from));
      probe.add_target(reinterpret_cast<std::byte*>(&to));
      probe.end_move(probe.add_box({}, {}, {}));
      probe.load(device(0), {});
    } catch (const UserError& error) {
      missing_ = error.what();
    }
  }

  std::string missing_;
};

/// The same moves on a GPU and on the CPU.
template <class F>
void expect_equal(DLDataType dtype, std::optional<ReduceOp> op, size_t bytes, F&& add) {
  std::mt19937 random(3);
  std::vector<std::byte> source(bytes);
  for (std::byte& each : source) each = static_cast<std::byte>(random() & 0x3b);
  std::vector<std::byte> wanted(bytes, std::byte{1}), given = wanted;
  BoxMoves host(dtype, op);
  add(host, source.data(), wanted.data());
  host.run(nullptr);
  DeviceBoxes boxes(dtype, op);
  add(boxes, source.data(), given.data());
  boxes.load(device(0), {});
  const ContextScope scope(device(0));
  for (int turn = 0; turn < 2; ++turn) boxes.launch(device(0), nullptr);
  EXPECT_TRUE(given == wanted);
}

TEST_F(DeviceBoxesTest, CopiesOfAllForms) {
  if (!missing_.empty()) GTEST_SKIP() << missing_;
  const std::vector<std::vector<int64_t>> extents = {{}, {7}, {3, 5}, {4, 1, 6}, {2, 3, 2, 2, 3, 2, 2, 3}, {0, 3}};
  for (const auto& each : extents) {
    for (const int64_t gap : {1, 2, 8}) {
      for (const bool turned : {false, true}) {
        expect_equal(kInt16, std::nullopt, 1 << 15, [&](auto& boxes, std::byte* from, std::byte* to) {
          std::vector<int64_t> strides(each.size());
          int64_t step = gap;
          for (size_t d = each.size(); d-- > 0; step *= std::max<int64_t>(each[d], 1)) strides[d] = step;
          std::vector<int64_t> other = strides;
          if (turned && each.size() == 2) other = {1, each[0]};
          boxes.add_source(from);
          boxes.add_target(to);
          boxes.add_target(to + (1 << 14));
          boxes.end_move(boxes.add_box(each, strides, other));
        });
      }
    }
  }
}

TEST_F(DeviceBoxesTest, ManyBoxesOfOneLaunch) {
  if (!missing_.empty()) GTEST_SKIP() << missing_;
  expect_equal(kInt32, std::nullopt, 1 << 14, [](auto& boxes, std::byte* from, std::byte* to) {
    for (int64_t k = 0; k < 60; ++k) {
      const std::vector<int64_t> extents = {k % 5 + 1}, step = {1};
      boxes.add_source(from + k * 64 + k % 3 * 4);
      boxes.add_target(to + k * 64 + k % 2 * 4);
      boxes.end_move(boxes.add_box(extents, step, step));
    }
  });
}

TEST_F(DeviceBoxesTest, ReductionsInTheOrderOfSources) {
  if (!missing_.empty()) GTEST_SKIP() << missing_;
  for (const DLDataType dtype : {kInt32, kFloat16}) {
    for (const ReduceOp op : {ReduceOp::Sum, ReduceOp::Max}) {
      for (const int64_t terms : {1, 2, 7}) {
        expect_equal(dtype, op, 1 << 14, [&](auto& boxes, std::byte* from, std::byte* to) {
          const std::vector<int64_t> extents = {5, 3}, compact = {3, 1}, turned = {1, 5};
          for (int64_t k = 0; k < terms; ++k) boxes.add_source(from + k * 256);
          boxes.add_target(to);
          boxes.end_move(boxes.add_box(extents, compact, turned));
        });
      }
    }
  }
}

TEST_F(DeviceBoxesTest, MoreTermsThanALaunchHas) {
  if (!missing_.empty()) GTEST_SKIP() << missing_;
  expect_equal(kInt32, ReduceOp::Sum, 1 << 14, [](auto& boxes, std::byte* from, std::byte* to) {
    const std::vector<int64_t> extents = {3}, step = {1};
    for (int64_t k = 0; k < 1001; ++k) boxes.add_source(from + k * 12);
    boxes.add_target(to);
    boxes.end_move(boxes.add_box(extents, step, step));
  });
}

TEST(DeviceBoxes, NoReductionOfADType) { EXPECT_THROW(DeviceBoxes({kDLComplex, 64, 1}, ReduceOp::Sum), UserError); }

}  // namespace
}  // namespace helve::runtime::cuda
