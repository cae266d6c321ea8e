// The pool: coverage of ranges, nesting, concurrent callers, fork, exceptions, interruption, scratch.
#include "helve/runtime/thread_pool.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "helve/support/diagnostic.h"

namespace helve::runtime {
namespace {

/// Sets the number of threads and restores it.
class Threads {
 public:
  explicit Threads(int count) : before_(num_threads()) { set_num_threads(count); }
  ~Threads() { set_num_threads(before_); }

 private:
  int before_;
};

void expect_each_once(int64_t count, int64_t grain) {
  std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
  std::atomic<bool> sound{true};
  parallel_for(count, grain, [&](int64_t begin, int64_t end, int worker) {
    if (begin >= end || worker < 0 || worker >= num_threads()) sound = false;
    if (end != count && end - begin < grain) sound = false;
    for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
  });
  EXPECT_TRUE(sound) << count << " " << grain;
  for (auto& hit : hits) ASSERT_EQ(hit, 1) << count << " " << grain;
}

TEST(ThreadPool, EveryItemOnce) {
  for (int threads : {1, 2, 3, 7}) {
    Threads guard(threads);
    EXPECT_EQ(num_threads(), threads);
    for (int64_t count : {0, 1, 2, 3, 7, 8, 63, 64, 65, 1000, 12345}) {
      for (int64_t grain : {1, 2, 7, 100, 100000}) expect_each_once(count, grain);
    }
  }
}

TEST(ThreadPool, HugeCountsDoNotOverflow) {
  Threads guard(2);
  constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
  std::atomic<uint64_t> total{0};
  parallel_for(kMax, 1, [&](int64_t begin, int64_t end, int) { total += static_cast<uint64_t>(end - begin); });
  EXPECT_EQ(total, static_cast<uint64_t>(kMax));
}

TEST(ThreadPool, WorkersAreUniqueWhileTheyRun) {
  Threads guard(4);
  std::atomic<int> busy[4] = {};
  std::atomic<bool> clash{false};
  for (int round = 0; round < 200; ++round) {
    parallel_for(64, 1, [&](int64_t, int64_t, int worker) {
      if (busy[worker].fetch_add(1) != 0) clash = true;
      std::this_thread::yield();
      busy[worker].fetch_sub(1);
    });
  }
  EXPECT_FALSE(clash);
}

TEST(ThreadPool, SeveralThreadsTakePart) {
  Threads guard(2);
  std::atomic<int> arrived{0};
  // Each range waits for the other: one thread alone would never end.
  parallel_for(2, 1, [&](int64_t, int64_t, int) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
  });
  EXPECT_EQ(arrived, 2);
}

TEST(ThreadPool, NestedLoopsRunOnTheirThread) {
  Threads guard(3);
  std::atomic<int64_t> sum{0};
  std::atomic<bool> moved{false};
  parallel_for(20, 1, [&](int64_t begin, int64_t end, int) {
    const auto here = std::this_thread::get_id();
    for (int64_t i = begin; i < end; ++i) {
      parallel_for(50, 1, [&](int64_t b, int64_t e, int worker) {
        if (std::this_thread::get_id() != here || worker != 0) moved = true;
        sum += e - b;
      });
    }
  });
  EXPECT_EQ(sum, 1000);
  EXPECT_FALSE(moved);
}

TEST(ThreadPool, ConcurrentCallers) {
  Threads guard(3);
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum{0};
  for (int c = 0; c < 4; ++c) {
    callers.emplace_back([&] {
      for (int round = 0; round < 300; ++round) {
        int64_t mine = 0;
        std::atomic<int64_t> loop{0};
        parallel_for(100, 3, [&](int64_t b, int64_t e, int) { loop += (b + e - 1) * (e - b) / 2; });
        mine = loop;
        sum += mine;
      }
    });
  }
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(sum, 4 * 300 * 4950);
}

TEST(ThreadPool, ExceptionsReachTheCaller) {
  for (int threads : {1, 3}) {
    Threads guard(threads);
    for (int64_t bad : {0, 50, 99}) {
      try {
        parallel_for(100, 1, [&](int64_t begin, int64_t end, int) {
          if (begin <= bad && bad < end) throw std::runtime_error("item " + std::to_string(bad));
        });
        FAIL() << bad;
      } catch (const std::runtime_error& error) {
        EXPECT_EQ(error.what(), "item " + std::to_string(bad));
      }
      expect_each_once(100, 1);
    }
  }
}

TEST(ThreadPool, InterruptionEndsALoop) {
  for (int threads : {1, 2}) {
    Threads guard(threads);
    std::atomic<int> running{0}, done{0};
    InterruptHook hook = [] { return true; };
    InterruptPoll poll(&hook);
    auto slow = [&](int64_t, int64_t, int) {
      ++running;
      std::this_thread::sleep_for(std::chrono::milliseconds(15));
      ++done;
      --running;
    };
    EXPECT_THROW(parallel_for(1000000, 10, slow, &poll), Interrupted);  // all slices together would sleep for minutes
    EXPECT_EQ(running, 0);
    EXPECT_LT(done, 1000);
    expect_each_once(100, 1);
  }
}

TEST(ThreadPool, InterruptibleLoopsCoverEveryItemOnce) {
  for (int threads : {1, 3}) {
    Threads guard(threads);
    InterruptHook hook = [] { return false; };
    for (int64_t count : {1, 7, 64, 1000, 12345}) {
      for (int64_t grain : {1, 3, 100}) {
        InterruptPoll poll(&hook);
        std::vector<std::atomic<int>> hits(static_cast<size_t>(count));
        std::atomic<int> small{0};
        parallel_for(
            count, grain,
            [&](int64_t begin, int64_t end, int) {
              if (end - begin < grain && end != count) ++small;
              for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
            },
            &poll);
        EXPECT_EQ(small, 0);
        for (auto& hit : hits) ASSERT_EQ(hit, 1) << count << " " << grain;
      }
    }
  }
}

TEST(ThreadPool, InterruptionWhileWaitingForAWorker) {
  Threads guard(2);
  std::atomic<bool> asked{false}, worker_ended{false};
  const auto caller = std::this_thread::get_id();
  InterruptHook hook = [&] {
    EXPECT_EQ(std::this_thread::get_id(), caller);
    asked = true;
    return true;
  };
  InterruptPoll poll(&hook);
  std::atomic<int> arrived{0};
  // The worker's range ends only after the hook was asked, so the asking happens in the caller's wait.
  auto task = [&](int64_t, int64_t, int worker) {
    ++arrived;
    while (arrived < 2) std::this_thread::yield();
    if (worker == 0) return;
    while (!asked) std::this_thread::yield();
    worker_ended = true;
  };
  EXPECT_THROW(parallel_for(2, 1, task, &poll), Interrupted);
  EXPECT_TRUE(worker_ended);
}

TEST(ThreadPool, WhatTheHookThrowsIsRethrown) {
  Threads guard(2);
  InterruptHook hook = []() -> bool { throw std::out_of_range("hook"); };
  InterruptPoll poll(&hook);
  auto slow = [](int64_t, int64_t, int) { std::this_thread::sleep_for(std::chrono::milliseconds(12)); };
  EXPECT_THROW(parallel_for(1000, 1, slow, &poll), std::out_of_range);
}

TEST(ThreadPool, WorksInAForkedChild) {
  Threads guard(3);
  expect_each_once(1000, 1);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    std::atomic<int> arrived{0};
    parallel_for(2, 1, [&](int64_t, int64_t, int) {
      ++arrived;
      while (arrived < 2) std::this_thread::yield();
    });
    _exit(arrived == 2 && num_threads() == 3 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  expect_each_once(1000, 1);
}

TEST(ThreadPool, ProcessesEndWithASleepingPool) {
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    set_num_threads(4);
    parallel_for(100, 1, [](int64_t, int64_t, int) {});
    exit(7);  // runs destructors of statics while workers sleep
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

TEST(ThreadPool, TheEnvironmentDecidesTheNumberAtStart) {
  const char* before = getenv("HELVE_NUM_THREADS");
  const std::string saved = before != nullptr ? before : "";
  unsetenv("HELVE_NUM_THREADS");
  const int machine = default_thread_count();
  EXPECT_GE(machine, 1);
  cpu_set_t mask, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof(mask), &mask), 0);
  EXPECT_LE(machine, CPU_COUNT(&mask));
  CPU_ZERO(&one);
  for (int cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) CPU_SET(cpu, &one);
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
  EXPECT_EQ(default_thread_count(), 1);
  sched_setaffinity(0, sizeof(mask), &mask);
  setenv("HELVE_NUM_THREADS", "5", 1);
  EXPECT_EQ(default_thread_count(), 5);
  for (const std::string bad : {"0", "-1", "4x", "x", "1025", "1.5", " 2"}) {
    setenv("HELVE_NUM_THREADS", bad.c_str(), 1);
    try {
      default_thread_count();
      ADD_FAILURE() << bad;
    } catch (const UserError& error) {
      EXPECT_EQ(error.what(), "error[HV0640]: HELVE_NUM_THREADS asks for '" + bad +
                                  "' threads\nhelp: give a whole number from 1 to 1024");
    }
  }
  setenv("HELVE_NUM_THREADS", "", 1);
  EXPECT_EQ(default_thread_count(), machine);
  before != nullptr ? setenv("HELVE_NUM_THREADS", saved.c_str(), 1) : unsetenv("HELVE_NUM_THREADS");
}

TEST(ThreadPool, BadNumbersAreErrors) {
  for (int64_t bad : {int64_t{0}, int64_t{-3}, int64_t{1025}}) {
    try {
      set_num_threads(bad);
      FAIL() << bad;
    } catch (const UserError& error) {
      EXPECT_EQ(error.what(), "error[HV0640]: set_num_threads asks for '" + std::to_string(bad) +
                                  "' threads\nhelp: give a whole number from 1 to 1024");
    }
  }
}

TEST(ThreadPool, CgroupQuotas) {
  namespace fs = std::filesystem;
  const fs::path root = fs::path(testing::TempDir()) / ("cgroup" + std::to_string(getpid()));
  auto write = [&](const std::string& path, const std::string& text) {
    fs::create_directories((root / path).parent_path());
    std::ofstream(root / path) << text << "\n";
  };
  auto limit = [&](const std::string& membership) {
    std::ofstream(root / "membership") << membership;
    return cgroup_cpu_limit((root / "membership").string(), root.string());
  };
  write("a/b/cpu.max", "max 100000");
  write("a/cpu.max", "250000 100000");
  write("cpu/c/cpu.cfs_quota_us", "150000");
  write("cpu/c/cpu.cfs_period_us", "100000");
  write("cpu/d/cpu.cfs_quota_us", "-1");
  write("cpu/d/cpu.cfs_period_us", "100000");
  EXPECT_EQ(limit("0::/a/b\n"), 3);  // of the group around it, rounded up
  EXPECT_EQ(limit("0::/a\n"), 3);
  EXPECT_EQ(limit("0::/\n"), 0);
  EXPECT_EQ(limit("0::/elsewhere/x\n"), 0);
  EXPECT_EQ(limit("5:memory:/c\n4:cpu,cpuacct:/c\n"), 2);
  EXPECT_EQ(limit("4:cpuset:/c\n"), 0);
  EXPECT_EQ(limit("4:cpu:/d\n"), 0);
  EXPECT_EQ(limit("4:cpu:/c\n0::/a\n"), 2);
  write("cpu.max", "50000 100000");
  EXPECT_EQ(limit("0::/elsewhere/x\n"), 1);  // inside a container the root is the group
  EXPECT_EQ(cgroup_cpu_limit((root / "missing").string(), root.string()), 0);
  fs::remove_all(root);
}

TEST(Scratch, IsAlignedReusedAndNests) {
  EXPECT_EQ(ScratchLease(0).data(), nullptr);
  std::byte* first = nullptr;
  {
    ScratchLease outer(100);
    first = outer.data();
    EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 4096, 0u);
    std::memset(outer.data(), 1, 100);
    {
      ScratchLease inner(100000);
      EXPECT_NE(inner.data(), first);
      std::memset(inner.data(), 2, 100000);
    }
    for (int i = 0; i < 100; ++i) ASSERT_EQ(outer.data()[i], std::byte{1});
  }
  EXPECT_EQ(ScratchLease(4096).data(), first);
  ScratchLease grown(1 << 20);
  std::memset(grown.data(), 3, 1 << 20);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(grown.data()) % 4096, 0u);
}

TEST(Scratch, MemoryThatIsNotThereIsRefusedAndLeavesTheThreadUsable) {
  try {
    ScratchLease lease(int64_t{1} << 61);
    FAIL();
  } catch (const UserError& error) {
    EXPECT_STREQ(error.what(),
                 "error[HV0623]: buffer 'memory of a block' of 2305843009213693952 bytes cannot be allocated\n"
                 "help: pass smaller tensors, or free memory");
  }
  ScratchLease lease(64);
  EXPECT_NE(lease.data(), nullptr);
}

}  // namespace
}  // namespace helve::runtime
