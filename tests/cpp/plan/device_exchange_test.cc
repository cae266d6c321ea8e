// Steps between GPUs, which the fakes of the driver and of NCCL stand for, against the same step in one process.
// Integers, and floats that helve reduces itself, have every bit; the forms are those that NCCL names and those it
// does not, even and uneven, in one piece and packed.
#include "helve/plan/device_exchange.h"

#include <gtest/gtest.h>

#include <cstring>
#include <deque>
#include <random>

#include "helve/plan/redistribution.h"
#include "helve/support/diagnostic.h"
#include "parts.h"
#include "runtime/fake_driver.h"
#include "runtime/thread_carrier.h"

namespace helve {
namespace {

using namespace plan_test;
using Index = std::vector<int64_t>;
using runtime::InterruptPoll;
using runtime::ProcessGroup;
using runtime::nccl::NcclWorld;

constexpr runtime::DLDataType kInt32{runtime::kDLInt, 32, 1}, kBytes{runtime::kDLUInt, 8, 4};

struct Row {
  const char *from, *to;
  Index mesh;
};

struct Case {
  CollectiveStep step;
  Parts from, there, here;
};

class DeviceExchangeTest : public runtime::cuda::FakeDriverTest {
 protected:
  DeviceExchangeTest() {
    setenv("HELVE_NCCL", HELVE_FAKE_NCCL, 1);
    runtime::cuda::fake_state().device_count = 8;
  }

  /// Runs the steps on threads that stand for processes; the first error.
  static std::string run(std::deque<Case>& cases, runtime::DLDataType dtype) {
    runtime::test::Network network(static_cast<int64_t>(cases.front().here.parts.size()));
    const auto faults = runtime::test::on_processes(network, {}, [&](ProcessGroup& group) {
      const std::shared_ptr<ProcessGroup> shared(&group, [](ProcessGroup*) {});
      NcclWorld world(shared, {}, 60);
      world.take(static_cast<int>(group.rank()));
      InterruptPoll poll;
      const auto rank = static_cast<size_t>(group.rank());
      std::deque<std::vector<std::byte>> memory;
      for (Case& each : cases) {
        DeviceMoves moves(RankExchange(each.step, group.rank()), each.from.parts[rank], each.there.parts[rank], dtype,
                          {}, [&](int64_t bytes) { return memory.emplace_back(static_cast<size_t>(bytes)).data(); });
        for (const bool compares : {true, false}) moves.run(world, nullptr, compares, poll);
      }
      world.end();
    });
    for (const std::exception_ptr& fault : faults) {
      try {
        if (fault) std::rethrow_exception(fault);
      } catch (const UserError& error) {
        return error.what();
      }
    }
    return "";
  }
};

TEST_F(DeviceExchangeTest, EveryFormOfStep) {
  const std::vector<std::vector<Row>> meshes = {{{"i j -> i", "i j -> *", {3}},
                                                 {"i j -> j", "i j -> *", {3}},
                                                 {"i j -> +", "i j -> i", {3}},
                                                 {"i j -> +", "i j -> j", {3}},
                                                 {"i j -> max", "i j -> *", {3}},
                                                 {"i j -> +", "i j -> 2", {3}},
                                                 {"i j -> 1", "i j -> *", {3}},
                                                 {"i j -> i", "i j -> j", {3}},
                                                 {"i j -> 0", "i j -> i", {3}},
                                                 {"i j -> i", "i j -> 2", {3}},
                                                 {"i j -> 0", "i j -> 2", {3}}},
                                                {{"i j -> i j", "i j -> * j", {2, 2}},
                                                 {"i j -> i j", "i j -> j i", {2, 2}},
                                                 {"i j -> + j", "i j -> * j", {2, 2}},
                                                 {"i j -> + +", "i j -> * *", {2, 2}},
                                                 {"i j -> + j", "i j -> i j", {2, 2}},
                                                 {"i j -> i 1", "i j -> * 1", {2, 2}},
                                                 {"i j -> 0 1", "i j -> * *", {2, 2}},
                                                 {"i j -> + i", "i j -> j *", {2, 2}}}};
  for (const auto& rows : meshes) {
    for (const runtime::DLDataType dtype : {kInt32, kBytes}) {
      std::deque<Case> cases;
      for (const Index& shape : std::vector<Index>{{12, 6}, {7, 5}, {1, 3}, {0, 4}, {130, 131}}) {
        for (const Row& row : rows) {
          if (dtype == kBytes && std::string(row.from).find_first_of("+m") != std::string::npos) continue;
          const std::vector<MeshAxis> mesh = mesh_of(row.mesh);
          const Distribution from = distribute({row.from}, shape, mesh), to = distribute({row.to}, shape, mesh);
          const bool columns = cases.size() % 2 == 1;
          Case& made = cases.emplace_back(derive(Transfer(from, to)), Parts(from, columns),
                                          Parts(to, cases.size() % 3 == 1), Parts(to, cases.size() % 3 == 1));
          std::minstd_rand random(7);
          for (auto& memory : made.from.memory) {
            for (int32_t& each : memory) each = static_cast<int32_t>(random());
          }
          LocalExchange(made.step.transfer).prepare(made.from.parts, made.here.parts, dtype).run(nullptr);
        }
      }
      ASSERT_EQ(run(cases, dtype), "");
      for (const Case& each : cases) EXPECT_EQ(each.there.memory, each.here.memory) << to_text(each.step);
    }
  }
}

TEST_F(DeviceExchangeTest, AFirstRunInACapture) {
  const std::vector<MeshAxis> mesh = mesh_of({1});
  const Distribution same = distribute({"i j -> i"}, {2, 2}, mesh);
  std::deque<Case> cases;
  cases.emplace_back(derive(Transfer(same, same)), Parts(same, false), Parts(same, false), Parts(same, false));
  runtime::cuda::fake_state().capture_status = 1;
  EXPECT_NE(run(cases, kInt32).find("connects processes at its first call, which a CUDA graph cannot record"),
            std::string::npos);
}

}  // namespace
}  // namespace helve
