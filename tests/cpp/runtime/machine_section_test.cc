// Machine code under a watch: it is asked for while it lasts, left where the answer is yes, and goes on where it is no.
#include "helve/runtime/machine_section.h"

#include <gtest/gtest.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <stdexcept>
#include <thread>
#include <vector>

#include "helve/runtime/executor.h"
#include "helve/runtime/thread_pool.h"
#include "processes.h"

namespace helve::runtime {
namespace {

// A loop as machine code has them: it calls nothing and looks at nothing.
void spin(const volatile bool* end) {
  while (!*end) {
  }
}

/// ThreadSanitizer keeps a signal back until the thread calls something of its own, which a loop of machine code never
/// does.
class MachineSection : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "signals do not reach machine code under ThreadSanitizer";
#endif
  }
};

TEST_F(MachineSection, RunsToItsEnd) {
  const InterruptHook hook = [] { return false; };
  InterruptPoll poll(&hook), none;
  int runs = 0;
  EXPECT_TRUE(run_machine_code(poll, [&] { ++runs; }));
  EXPECT_TRUE(run_machine_code(none, [&] { ++runs; }));
  EXPECT_EQ(runs, 2);
}

TEST_F(MachineSection, IsLeftWhenTheAnswerIsYes) {
  for (int round = 0; round < 3; ++round) {
    int asked = 0;
    const InterruptHook hook = [&] { return ++asked == 2; };
    InterruptPoll poll(&hook);
    const volatile bool never = false;
    EXPECT_FALSE(run_machine_code(poll, [&] { spin(&never); }));
    EXPECT_EQ(asked, 2);
    EXPECT_THROW(poll.throw_if_requested(), Interrupted);
  }
}

TEST_F(MachineSection, GoesOnWhereItWasWhenTheAnswerIsNo) {
  volatile bool end = false;
  int asked = 0;
  const InterruptHook hook = [&] {
    end = ++asked == 3;
    return false;
  };
  InterruptPoll poll(&hook);
  double sum = 0;
  EXPECT_TRUE(run_machine_code(poll, [&] {
    for (int i = 0; !end; i = (i + 1) % 8) sum = std::max(sum, 1.0 / (1 << i));
  }));
  EXPECT_EQ(asked, 3);
  EXPECT_EQ(sum, 1.0);
}

TEST_F(MachineSection, KeepsWhatTheHookThrew) {
  const InterruptHook hook = []() -> bool { throw std::runtime_error("from the hook"); };
  InterruptPoll poll(&hook);
  const volatile bool never = false;
  EXPECT_FALSE(run_machine_code(poll, [&] { spin(&never); }));
  EXPECT_THROW(poll.throw_if_requested(), std::runtime_error);
}

TEST_F(MachineSection, TheHookMayRunMachineCodeOfItsOwn) {
  int inner_runs = 0, asked = 0;
  const InterruptHook inner_hook = [&] { return true; };
  const InterruptHook hook = [&] {
    InterruptPoll inner(&inner_hook);
    const volatile bool never = false;
    inner_runs += run_machine_code(inner, [&] { spin(&never); }) ? 100 : 1;
    return ++asked == 2;
  };
  InterruptPoll poll(&hook);
  const volatile bool never = false;
  EXPECT_FALSE(run_machine_code(poll, [&] { spin(&never); }));
  EXPECT_EQ(inner_runs, 2);
}

TEST_F(MachineSection, WorkersAreLeftWithTheirCaller) {
  set_num_threads(3);
  std::atomic<int> entered{0};
  const InterruptHook hook = [&] { return entered == 3; };
  InterruptPoll poll(&hook);
  const volatile bool never = false;
  EXPECT_THROW(parallel_for(
                   3, 1,
                   [&](int64_t, int64_t, int) {
                     ++entered;
                     run_machine_code(poll, [&] { spin(&never); });
                   },
                   &poll),
               Interrupted);
  std::atomic<int64_t> items{0};
  parallel_for(1000, 1, [&](int64_t begin, int64_t end, int) { items += end - begin; });
  EXPECT_EQ(items, 1000);  // the pool is whole
}

void forever(void* const*, const int64_t*, int64_t, int64_t, std::byte*) {
  const volatile bool never = false;
  spin(&never);
}

TEST_F(MachineSection, OneLongBlockOfAPlanCanBeInterrupted) {
  Plan plan;
  plan.name = "forever";
  plan.steps = {{Launch{0, "forever", 1, {}, {}}}};
  const Executor executor(plan, {forever});
  const InterruptHook hook = [] { return true; };
  CallOptions options;
  options.interrupt = &hook;
  for (int round = 0; round < 2; ++round) EXPECT_THROW(executor.call({}, {}, options), Interrupted);
}

TEST_F(MachineSection, AnotherHandlerOfTheSignalSeesItsOwn) {
  run_processes(1, [](int) {
    static std::atomic<int> count{0};
    struct sigaction action{};
    action.sa_handler = [](int) { ++count; };
    sigaction(SIGURG, &action, nullptr);
    const InterruptHook hook = [asked = 0]() mutable { return ++asked == 2; };
    InterruptPoll poll(&hook);
    const volatile bool never = false;
    run_machine_code(poll, [&] { spin(&never); });
    raise(SIGURG);
    return count == 1 ? 0 : 1;
  });
}

TEST_F(MachineSection, AChildOfForkHasAWatchOfItsOwn) {
  const InterruptHook hook = [] { return true; };
  const auto left = [&] {
    InterruptPoll poll(&hook);
    const volatile bool never = false;
    return !run_machine_code(poll, [&] { spin(&never); });
  };
  EXPECT_TRUE(left());
  run_processes(2, [&](int) { return left() && left() ? 0 : 1; });
  EXPECT_TRUE(left());
}

/// Runs a section until the watch has had its chance to signal.
bool run_for_some_visits(InterruptPoll& poll) {
  volatile bool end = false;
  std::thread ending([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    end = true;
  });
  const bool whole = run_machine_code(poll, [&] { spin(&end); });
  ending.join();
  return whole;
}

/// A thread may block signals for a time: what counts is its mask as the signal comes.
TEST_F(MachineSection, ASignalThatIsBlockedStopsNothingAndNothingIsLeftOfIt) {
  std::thread([] {
    sigset_t ours, waiting;
    sigemptyset(&ours);
    sigaddset(&ours, kSectionSignal);
    const auto waits = [&] { return sigpending(&waiting) == 0 && sigismember(&waiting, kSectionSignal) == 1; };
    int asked = 0;
    const InterruptHook hook = [&] { return ++asked > 0; };
    const auto left = [&] {
      InterruptPoll poll(&hook);
      const volatile bool never = false;
      return !run_machine_code(poll, [&] { spin(&never); });
    };
    for (int round = 1; round <= 2; ++round) {
      pthread_sigmask(SIG_BLOCK, &ours, nullptr);
      InterruptPoll poll(&hook);
      EXPECT_TRUE(run_for_some_visits(poll));
      EXPECT_EQ(asked, round - 1);
      EXPECT_FALSE(waits());
      raise(kSectionSignal);  // of somebody else: it goes on waiting
      EXPECT_TRUE(run_for_some_visits(poll));
      EXPECT_TRUE(waits());
      pthread_sigmask(SIG_UNBLOCK, &ours, nullptr);
      EXPECT_TRUE(left());
      EXPECT_EQ(asked, round);
    }
  }).join();
}

TEST_F(MachineSection, ManyThreadsComeAndGo) {
  const InterruptHook hook = [] { return true; };
  for (int round = 0; round < 4; ++round) {
    std::vector<std::thread> threads;
    std::atomic<int> stopped{0};
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] {
        InterruptPoll poll(&hook);
        const volatile bool never = false;
        stopped += run_machine_code(poll, [&] { spin(&never); }) ? 0 : 1;
      });
    }
    for (std::thread& each : threads) each.join();
    EXPECT_EQ(stopped, 4);
  }
}

}  // namespace
}  // namespace helve::runtime
