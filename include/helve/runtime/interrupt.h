// Asking, on the calling thread, whether the user wants a call to end.
// Ctrl-C arrives as a flag in the caller's world; long waits must look at it without making short calls slow.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>

namespace helve::runtime {

/// Thrown at the caller when its hook asked to stop, after every running task has ended. Outputs are undefined.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

/// Answers true when the call shall stop. An exception that it throws is kept, stops the call and is rethrown at its
/// end.
using InterruptHook = std::function<bool()>;

/// Polls a hook at most every 10 ms, on the thread that made it. Whoever waits asks `requested` at least every 100 ms.
class InterruptPoll {
 public:
  explicit InterruptPoll(const InterruptHook* hook = nullptr);

  bool active() const { return hook_ != nullptr; }
  bool requested() noexcept;
  /// Throws what the hook threw, or Interrupted, when a stop was requested.
  void throw_if_requested();

  /// Whether this is the thread that may ask the hook.
  bool is_own_thread() const { return pthread_equal(owner_, pthread_self()) != 0; }
  /// Whether an answer was yes; any thread may ask.
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

 private:
  const InterruptHook* hook_;
  const pthread_t owner_ = pthread_self();
  std::atomic<bool> stopped_{false};
  std::exception_ptr error_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace helve::runtime
