// Work on a thread of its own: its value and its faults come back, its caller can go, and it learns of that.
#include "helve/runtime/own_thread.h"

#include <gtest/gtest.h>

#include <chrono>
#include <stdexcept>
#include <string>
#include <thread>

#include "helve/support/cancel.h"

namespace helve::runtime {
namespace {

TEST(OwnThread, GivesTheValueBack) {
  const std::thread::id here = std::this_thread::get_id();
  EXPECT_NE(on_own_thread([] { return std::this_thread::get_id(); }, nullptr), here);
  EXPECT_EQ(on_own_thread([] { return std::string("text"); }, nullptr), "text");
}

TEST(OwnThread, FaultsAreThoseOfTheCaller) {
  const InterruptHook hook = [] { return false; };
  EXPECT_THROW(on_own_thread([]() -> int { throw std::runtime_error("a fault"); }, &hook), std::runtime_error);
}

TEST(OwnThread, HasRoom) {
  const auto touch = [] {
    volatile char room[8 << 20];
    for (size_t i = 0; i < sizeof room; i += 4096) room[i] = 1;
    return room[0] + 1;
  };
  EXPECT_EQ(on_own_thread(touch, nullptr), 2);
}

TEST(OwnThread, TheCallerGoesAndTheWorkLearnsOfIt) {
  struct Seen {
    std::atomic<bool> began{false}, cancelled{false};
  };
  const auto seen = std::make_shared<Seen>();
  const InterruptHook hook = [&]() -> bool {
    if (seen->began) throw std::runtime_error("from the hook");
    return false;
  };
  const auto work = [seen]() -> int {
    seen->began = true;
    try {
      while (true) throw_if_cancelled();
    } catch (const Cancelled&) {
      seen->cancelled = true;
      throw;
    }
  };
  EXPECT_THROW(on_own_thread(work, &hook), std::runtime_error);
  while (!seen->cancelled) std::this_thread::yield();  // ends, or the test never does
}

TEST(OwnThread, WorkOfAThreadThatIsWaitedForIsNotCancelled) {
  EXPECT_FALSE(is_cancelled());
  EXPECT_FALSE(on_own_thread([] { return is_cancelled(); }, nullptr));
  std::atomic<bool> flag{true};
  const CancelScope outer(flag);
  EXPECT_TRUE(is_cancelled());
  const std::atomic<bool> unset{false};
  {
    const CancelScope inner(unset);
    EXPECT_FALSE(is_cancelled());
  }
  EXPECT_THROW(throw_if_cancelled(), Cancelled);
}

}  // namespace
}  // namespace helve::runtime
