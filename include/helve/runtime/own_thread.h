// Work on a thread and a stack of its own, whose caller may go. A compile runs through libraries that nobody can
// interrupt; its caller waits elsewhere, so that Ctrl-C ends the wait at once, and a thread with a small stack compiles
// what any other does.
#pragma once

#include <atomic>
#include <condition_variable>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>

#include "helve/runtime/interrupt.h"

namespace helve::runtime {

/// Stack of the thread, in bytes: twice what a main thread usually has.
constexpr size_t kOwnStack = size_t{16} << 20;

/// Shared by the thread and whoever waits for it; the last of them destroys it.
struct OwnWork {
  virtual ~OwnWork() = default;
  virtual void run() = 0;

  std::mutex mutex;
  std::condition_variable ended;
  bool has_ended = false;
  std::exception_ptr error;
  std::atomic<bool> cancelled{false};
};

/// See on_own_thread.
void run_and_wait(const std::shared_ptr<OwnWork>& work, const InterruptHook* hook);

/// The value of `work()`, or what it throws. While it runs, the calling thread asks `hook` (null: nobody). Where the
/// answer is yes that thread goes, with what the hook threw or Interrupted, and the work is cancelled
/// (support/cancel.h): it must own all that it touches. Without a thread to be had the work runs on the caller's.
template <class F>
auto on_own_thread(F work, const InterruptHook* hook) {
  using Result = std::invoke_result_t<F&>;
  struct Work final : OwnWork {
    explicit Work(F f) : function(std::move(f)) {}
    void run() override { result.emplace(function()); }
    F function;
    std::optional<Result> result;
  };
  const auto shared = std::make_shared<Work>(std::move(work));
  run_and_wait(shared, hook);
  return std::move(*shared->result);
}

}  // namespace helve::runtime
