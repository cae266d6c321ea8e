// Moves of boxes against loops over elements.
// Extents, orders of strides, signs and sizes of elements are random; long rows and many rows are cut into units.
#include "helve/runtime/box_moves.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <numeric>
#include <random>

#include "helve/support/diagnostic.h"

namespace helve::runtime {
namespace {

/// An array whose dimensions are stored in a random order and direction, with gaps.
struct Strided {
  std::vector<int64_t> strides;  ///< in elements
  int64_t first = 0, size = 1;

  Strided(const std::vector<int64_t>& extents, std::mt19937& random) : strides(extents.size()) {
    std::vector<size_t> order(extents.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::shuffle(order.begin(), order.end(), random);
    for (size_t d : order) {
      strides[d] = size;
      size *= std::max<int64_t>(1, extents[d]) + static_cast<int64_t>(random() % 2);
      if (random() % 4 != 0 || extents[d] == 0) continue;
      first += strides[d] * (extents[d] - 1);
      strides[d] = -strides[d];
    }
  }
};

std::vector<std::vector<int64_t>> indices_of(const std::vector<int64_t>& extents) {
  std::vector<std::vector<int64_t>> out = {{}};
  for (int64_t extent : extents) {
    std::vector<std::vector<int64_t>> longer;
    for (const auto& index : out) {
      for (int64_t k = 0; k < extent; ++k) {
        longer.push_back(index);
        longer.back().push_back(k);
      }
    }
    out = std::move(longer);
  }
  return out;
}

int64_t offset(const Strided& array, const std::vector<int64_t>& index) {
  return std::inner_product(index.begin(), index.end(), array.strides.begin(), array.first);
}

TEST(BoxMoves, CopiesWhatLoopsCopy) {
  std::mt19937 random(7);
  for (int trial = 0; trial < 400; ++trial) {
    const int64_t item = int64_t{1} << random() % 5;
    std::vector<int64_t> extents(random() % 5);
    for (int64_t& extent : extents) extent = static_cast<int64_t>(random() % 6);
    const Strided from(extents, random), to(extents, random);
    const size_t targets = 1 + random() % 3;
    std::vector<unsigned char> source(static_cast<size_t>(from.size * item));
    for (unsigned char& byte : source) byte = static_cast<unsigned char>(random());
    std::vector<std::vector<unsigned char>> made(targets,
                                                 std::vector<unsigned char>(static_cast<size_t>(to.size * item)));
    std::vector<std::vector<unsigned char>> wanted = made;
    BoxMoves moves({kDLUInt, 8, static_cast<uint16_t>(item)}, std::nullopt);
    moves.add_source(reinterpret_cast<std::byte*>(source.data()) + from.first * item);
    for (auto& each : made) moves.add_target(reinterpret_cast<std::byte*>(each.data()) + to.first * item);
    moves.end_move(moves.add_box(extents, from.strides, to.strides));
    moves.run(nullptr);
    for (const auto& index : indices_of(extents)) {
      for (auto& each : wanted)
        std::memcpy(each.data() + offset(to, index) * item, source.data() + offset(from, index) * item,
                    static_cast<size_t>(item));
    }
    ASSERT_EQ(made, wanted) << "trial " << trial;
  }
}

TEST(BoxMoves, CutsLongRowsAndManyRows) {
  for (const std::vector<int64_t>& extents :
       std::vector<std::vector<int64_t>>{{300001}, {3, 100003}, {70001, 3}, {1000, 2, 77}}) {
    const int64_t size = std::accumulate(extents.begin(), extents.end(), int64_t{1}, std::multiplies<>());
    std::vector<int64_t> strides(extents.size(), 1), wide = strides;
    for (size_t d = extents.size() - 1; d-- > 0;) strides[d] = strides[d + 1] * extents[d + 1];
    for (size_t d = extents.size(); d-- > 0;)
      wide[d] = d + 1 == extents.size() ? 1 : wide[d + 1] * (extents[d + 1] + 1);
    std::vector<int32_t> a(static_cast<size_t>(wide[0] * (extents[0] + 1))), b(a.size()),
        sum(static_cast<size_t>(size));
    std::iota(a.begin(), a.end(), 0);
    std::iota(b.begin(), b.end(), 5);
    BoxMoves moves({kDLInt, 32, 1}, ReduceOp::Sum);
    for (auto* each : {&a, &b}) moves.add_source(reinterpret_cast<std::byte*>(each->data()));
    moves.add_target(reinterpret_cast<std::byte*>(sum.data()));
    moves.end_move(0);
    moves.add_box(extents, wide, strides);  // the form after the move
    moves.run(nullptr);
    int64_t at = 0;
    for (const auto& index : indices_of(extents)) {
      const int64_t place = std::inner_product(index.begin(), index.end(), wide.begin(), int64_t{0});
      ASSERT_EQ(sum[static_cast<size_t>(at++)], 2 * place + 5);
    }
  }
}

TEST(BoxMoves, RunsManyMovesOfSeveralBoxesAndEmptyOnes) {
  std::vector<int64_t> from(5000), to(5000, -1), wanted = to;
  std::iota(from.begin(), from.end(), 0);
  BoxMoves moves({kDLInt, 64, 1}, std::nullopt);
  const int64_t one = 1;
  std::mt19937 random(3);
  for (int64_t begin = 0; begin < 5000;) {
    const int64_t count = std::min<int64_t>(5000 - begin, static_cast<int64_t>(random() % 40));
    moves.add_source(reinterpret_cast<std::byte*>(from.data() + begin));
    moves.add_target(reinterpret_cast<std::byte*>(to.data() + begin));
    moves.end_move(moves.add_box({&count, 1}, {&one, 1}, {&one, 1}));
    for (int64_t k = 0; k < count; ++k) wanted[static_cast<size_t>(begin + k)] = begin + k;
    begin += count + 1;
  }
  moves.run(nullptr);
  EXPECT_EQ(to, wanted);
  for (int64_t& each : from) each += 7;
  for (int64_t& each : wanted) each += each < 0 ? 0 : 7;
  moves.run(nullptr);  // again
  EXPECT_EQ(to, wanted);
}

TEST(BoxMoves, RefusesWhatHasNoReduction) {
  EXPECT_THROW(BoxMoves({kDLComplex, 64, 1}, ReduceOp::Sum), UserError);
  EXPECT_THROW(BoxMoves({kDLUInt, 8, 4}, ReduceOp::Max), UserError);
}

}  // namespace
}  // namespace helve::runtime
