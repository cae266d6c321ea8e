// Transfers between parts in memory, against what each device is to hold.
// All pairs of distributions of small tensors; parts are stored in row-major order, or the other way round.
#include "helve/plan/local_exchange.h"

#include <gtest/gtest.h>

#include "every_distribution.h"
#include "parts.h"

namespace helve {
namespace {

using namespace plan_test;
using Index = std::vector<int64_t>;

void check(const Distribution& from, const Distribution& to, bool columns) {
  const Transfer transfer(from, to);
  const LocalExchange exchange(transfer);
  Parts sources(from, columns), targets(to, columns);
  const std::vector<Index> all = devices(from.mesh);
  for (size_t k = 0; k < all.size(); ++k) {
    for (const Index& element : indices(from.shape)) {
      if (holds(from, all[k], element)) sources.at(from, k, element) = value_of(element);
    }
  }
  LocalMoves moves = exchange.prepare(sources.parts, targets.parts, {runtime::kDLInt, 32, 1});
  moves.run(nullptr);
  for (auto& memory : targets.memory) std::fill(memory.begin(), memory.end(), -100);
  moves.run(nullptr);  // as if it were the first time
  for (size_t k = 0; k < all.size(); ++k) {
    bool begun = false;
    for (size_t a = 0; a < all[k].size(); ++a) begun |= transfer.roles()[a].begun && all[k][a] != 0;
    for (const Index& element : indices(from.shape)) {
      if (!holds(to, all[k], element)) continue;
      const int32_t wanted = begun ? -100 : static_cast<int32_t>(transfer.terms()) * value_of(element);
      ASSERT_EQ(targets.at(to, k, element), wanted) << "device " << k;
    }
    if (!targets.memory[k].empty()) {
      ASSERT_EQ(targets.memory[k].back(), -100) << "beyond the part of device " << k;
    }
  }
}

TEST(LocalExchange, MovesWhatDevicesAreToHold) {
  for (const Index& mesh : std::vector<Index>{{3}, {2, 2}, {2, 3}}) {
    for (const Index& shape : std::vector<Index>{{5, 4}, {0, 3}, {1, 7}}) {
      const std::vector<Distribution> all = all_distributions(shape, mesh_of(mesh));
      size_t count = 0;
      for (const Distribution& from : all) {
        for (const Distribution& to : all) check(from, to, count++ % 2 == 1);
      }
    }
  }
}

TEST(LocalExchange, ReadsABoxForAllItsReceiversOnce) {
  const std::vector<MeshAxis> mesh = mesh_of({4});
  const auto at = [&](const char* text) { return distribute({text}, {8}, mesh); };
  EXPECT_EQ(LocalExchange(Transfer(at("i -> i"), at("i -> *"))).moves().size(), 4u);
  EXPECT_EQ(LocalExchange(Transfer(at("i -> +"), at("i -> *"))).moves().size(), 1u);
  EXPECT_EQ(LocalExchange(Transfer(at("i -> +"), at("i -> i"))).moves().size(), 4u);
  EXPECT_EQ(LocalExchange(Transfer(at("i -> 0"), at("i -> *"))).moves().size(), 1u);
}

TEST(LocalExchange, FindsPartsThatShareMemory) {
  std::vector<int32_t> memory(100);
  auto* base = reinterpret_cast<std::byte*>(memory.data());
  const Index extents = {4, 5}, rows = {10, 1}, broadcast = {0, 1};
  const LocalPart left{base, extents, rows}, right{base + 5 * 4, extents, rows}, below{base + 40 * 4, extents, rows};
  const LocalPart shifted{base + 4 * 4, extents, rows}, same{base + 60 * 4, extents, broadcast}, none{};
  const auto overlap = [](std::vector<LocalPart> sources, std::vector<LocalPart> targets) {
    return overlapping_part(sources, targets, 4);
  };
  EXPECT_EQ(overlap({left, none}, {right, below}), std::nullopt);  // columns of one matrix, interleaved
  EXPECT_EQ(overlap({left, left}, {below, none}), std::nullopt);   // sources may share
  EXPECT_EQ(overlap({left}, {none, shifted}), 1);
  EXPECT_EQ(overlap({below}, {left, shifted}), 1);
  EXPECT_EQ(overlap({left}, {none, none, same}), 2);
}

}  // namespace
}  // namespace helve
