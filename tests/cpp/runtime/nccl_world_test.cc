// GPUs of processes by the fake NCCL: communicators, calls that fail, and calls that do not end.
// Threads stand for processes; each has a GPU of the fake driver.
#include "helve/runtime/nccl/nccl_world.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>

#include "helve/support/diagnostic.h"
#include "nccl/watch.h"
#include "runtime/fake_driver.h"
#include "runtime/thread_carrier.h"

namespace helve::runtime::nccl {
namespace {

class NcclWorldTest : public cuda::FakeDriverTest {
 protected:
  NcclWorldTest() {
    setenv("HELVE_NCCL", HELVE_FAKE_NCCL, 1);
    cuda::fake_state().device_count = kMost;
  }

  static constexpr int kMost = 4;

  /// Runs the code for each of so many worlds, on a thread of its own; what each threw, as a user reads it.
  template <class F>
  static std::vector<std::string> on_worlds(int64_t size, double timeout, F&& code) {
    test::Network network(size);
    std::vector<std::string> out(static_cast<size_t>(size));
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < size; ++rank) {
      threads.emplace_back([&, rank] {
        const auto group = std::make_shared<ProcessGroup>(std::make_unique<test::ThreadCarrier>(network, rank),
                                                          ProcessGroup::Options{timeout, true});
        NcclWorld world(group, {}, timeout);
        world.take(static_cast<int>(rank));
        try {
          code(world, rank);
        } catch (const UserError& error) {
          out[static_cast<size_t>(rank)] = error.what();
        }
        world.end();
      });
    }
    for (std::thread& each : threads) each.join();
    return out;
  }
};

int sum_over(NcclWorld& world, const std::vector<int64_t>& members, int value) {
  InterruptPoll poll;
  int out = 0;
  const NcclComm comm = world.communicator(members, poll);
  world.call("a sum", true, poll, [&] {
    world.check("ncclAllReduce", world.library().all_reduce(&value, &out, 1, kNcclInt32, kNcclSum, comm, nullptr),
                comm);
  });
  return out;
}

TEST_F(NcclWorldTest, CommunicatorsOfAllAndOfSome) {
  const auto faults = on_worlds(4, 30, [](NcclWorld& world, int64_t rank) {
    const int value = 1 << rank;
    EXPECT_EQ(sum_over(world, {0, 1, 2, 3}, value), 15);
    EXPECT_EQ(sum_over(world, {rank % 2, rank % 2 + 2}, value), rank % 2 == 0 ? 5 : 10);
    EXPECT_EQ(sum_over(world, {rank / 2 * 2, rank / 2 * 2 + 1}, value), rank / 2 == 0 ? 3 : 12);
    EXPECT_EQ(sum_over(world, {3, 2, 1, 0}, value), 15);
    InterruptPoll poll;
    const std::vector<int64_t> alone = {rank};
    EXPECT_EQ(world.communicator(alone, poll), nullptr);
  });
  EXPECT_EQ(faults, std::vector<std::string>(4));
}

TEST_F(NcclWorldTest, ACallThatFails) {
  const auto faults = on_worlds(2, 30, [](NcclWorld& world, int64_t) {
    InterruptPoll poll;
    const std::vector<int64_t> all = {0, 1};
    const NcclComm comm = world.communicator(all, poll);
    world.call("a message", false, poll,
               [&] { world.check("ncclSend", world.library().send(nullptr, 1, kNcclInt8, 7, comm, nullptr), comm); });
  });
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(faults[rank],
              "error[HV0428]: ncclSend failed on process " + std::to_string(rank) +
                  " with invalid argument: no such peer\nhelp: run it with NCCL_DEBUG=WARN, by which NCCL "
                  "says more");
  }
}

TEST_F(NcclWorldTest, ACallInWhichAllWait) {
  std::atomic<int> waiting = 2;
  const auto faults = on_worlds(2, 0.3, [&](NcclWorld& world, int64_t) {
    InterruptPoll poll;
    world.call("a collective", true, poll, [&] {
      std::this_thread::sleep_for(std::chrono::seconds(1));
      --waiting;
    });
  });
  EXPECT_EQ(waiting, 0);
  for (size_t rank = 0; rank < 2; ++rank) {
    EXPECT_EQ(faults[rank],
              "error[HV0431]: a collective did not end on the GPU of process " + std::to_string(rank) +
                  " within 0.3 s: all processes wait in it\nhelp: run it with NCCL_DEBUG=WARN; if it only "
                  "takes longer, set HELVE_COMM_TIMEOUT to more seconds");
  }
}

TEST_F(NcclWorldTest, WhoDoesNotComeIsNamed) {
  const auto faults = on_worlds(3, 2, [](NcclWorld& world, int64_t rank) {
    EXPECT_EQ(sum_over(world, {0, 1, 2}, 1), 3);
    if (rank != 1) sum_over(world, {0, 1, 2}, 1);
  });
  EXPECT_EQ(faults[1], "");
  for (const size_t rank : {0, 2}) {
    EXPECT_TRUE(faults[rank].starts_with("error[HV0420]: process 1 did not reach step ") &&
                faults[rank].find(", a sum, which did not end, within 2 s of process 0") != std::string::npos)
        << faults[rank];
  }
}

TEST_F(NcclWorldTest, TheWatchSeesWhatDoesNotEnd) {
  const std::string late = [] {
    std::string out;
    std::atomic<bool> told = false;
    Watch watch(
        cuda::device(0), 0.1,
        [&](const std::string& what) {
          out = what;
          told = true;
        },
        [] { return std::string(); });
    const cuda::ContextScope scope(cuda::device(0));
    for (const char* step : {"one", "two", "three"}) {
      watch.begin(nullptr);
      watch.end(step, nullptr);
      if (step == std::string("two")) cuda::fake_state().stuck_event = cuda::fake_state().recorded_event;
    }
    for (int turn = 0; turn < 500 && !told; ++turn) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return out;
  }();
  EXPECT_EQ(late, "two");
}

TEST_F(NcclWorldTest, TheWatchLeavesAloneWhatEnds) {
  std::atomic<int> told = 0;
  Watch watch(cuda::device(0), 0.05, [&](const std::string&) { ++told; }, [] { return std::string(); });
  const cuda::ContextScope scope(cuda::device(0));
  for (int k = 0; k < 300; ++k) {  // more than it watches at a time
    watch.begin(nullptr);
    watch.end("a step", nullptr);
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  EXPECT_EQ(told, 0);
}

TEST(Nccl, VersionsAsTheyAreWritten) {
  EXPECT_EQ(version_text(22809), "2.28.9");
  EXPECT_EQ(version_text(2804), "2.8.4");
}

}  // namespace
}  // namespace helve::runtime::nccl
