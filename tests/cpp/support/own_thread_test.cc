// Work on a thread of its own: its value and its faults come back, its caller can go, and it learns of that.
#include "helve/support/own_thread.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <stdexcept>
#include <string>
#include <thread>

#include "helve/support/cancel.h"

namespace helve {
namespace {

using std::this_thread::get_id;

TEST(OwnThread, GivesTheValueBack) {
  EXPECT_NE(on_own_thread(get_id), get_id());
  EXPECT_EQ(on_own_thread([] { return std::string("text"); }), "text");
  bool ran = false;
  on_own_thread([&] { ran = true; });
  EXPECT_TRUE(ran);
}

TEST(OwnThread, FaultsAreThoseOfTheCaller) {
  EXPECT_THROW(on_own_thread([]() -> int { throw std::runtime_error("a fault"); }, [] {}), std::runtime_error);
}

TEST(OwnThread, HasRoom) {
  const auto touch = [] {
    volatile char room[8 << 20];
    for (size_t i = 0; i < sizeof room; i += 4096) room[i] = 1;
    return room[0] + 1;
  };
  EXPECT_EQ(on_own_thread(touch), 2);
  EXPECT_GE(on_own_thread(stack_left), kCompileStack);
}

TEST(OwnThread, IsMadeWhereTheStackIsTooSmall) {
  EXPECT_EQ(with_stack(1, get_id), get_id());
  EXPECT_EQ(with_stack(stack_left() / 2, get_id), get_id());
  const auto here = get_id();
  on_own_thread([&] {
    const auto own = get_id();
    EXPECT_EQ(with_stack(kCompileStack, get_id), own);  // no thread upon a thread
    EXPECT_NE(own, here);
  });
  EXPECT_NE(with_stack(SIZE_MAX, get_id), here);
}

TEST(OwnThread, LeavesSignalsToOthers) {
  const auto blocks = [] {
    sigset_t mask;
    pthread_sigmask(SIG_SETMASK, nullptr, &mask);
    return sigismember(&mask, SIGINT);
  };
  EXPECT_EQ(blocks(), 0);
  EXPECT_EQ(with_stack(SIZE_MAX, blocks), 1);
  EXPECT_EQ(blocks(), 0);
}

struct Seen {
  std::atomic<bool> began{false}, cancelled{false};

  int wait_until_cancelled() {
    began = true;
    try {
      while (true) throw_if_cancelled();
    } catch (const Cancelled&) {
      cancelled = true;
      throw;
    }
  }
};

TEST(OwnThread, TheCallerGoesAndTheWorkLearnsOfIt) {
  const auto seen = std::make_shared<Seen>();
  const auto ask = [&] {
    if (seen->began) throw std::runtime_error("from the caller");
  };
  EXPECT_THROW(on_own_thread([seen] { return seen->wait_until_cancelled(); }, ask), std::runtime_error);
  while (!seen->cancelled) std::this_thread::yield();  // ends, or the test never does
}

TEST(OwnThread, WorkOfACancelledThreadIsCancelledAndWaitedFor) {
  std::atomic<bool> flag{false};
  const CancelScope scope(flag);
  Seen seen;
  const auto ask = [&] {
    if (seen.began) flag = true;
  };
  EXPECT_THROW(on_own_thread([&] { return seen.wait_until_cancelled(); }, ask), Cancelled);
  EXPECT_TRUE(seen.cancelled);
  EXPECT_TRUE(with_stack(SIZE_MAX, is_cancelled));
}

TEST(OwnThread, WorkOfAThreadThatIsWaitedForIsNotCancelled) {
  EXPECT_FALSE(is_cancelled());
  EXPECT_FALSE(on_own_thread(is_cancelled));
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
}  // namespace helve
