// Asks on the calling thread whether the user wants a call to end.
// Ctrl-C arrives as a flag on the caller's side; long waits must check it without slowing down short calls.
#pragma once

#include <pthread.h>

#include <atomic>
#include <chrono>
#include <exception>
#include <functional>

namespace helve::runtime {

/// Thrown at the caller if its hook asked to stop, after every running task has ended. Outputs are undefined.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

/// Returns true if the call should stop. An exception that it throws is kept, stops the call and is rethrown at its
/// end.
using InterruptHook = std::function<bool()>;

/// Polls a hook at most every 10 ms, on the thread that created it. A waiting thread calls `requested` at least every
/// 100 ms.
class InterruptPoll {
 public:
  explicit InterruptPoll(const InterruptHook* hook = nullptr);

  bool active() const { return hook_ != nullptr; }
  bool requested() noexcept;
  /// Throws what the hook threw, or Interrupted, if a stop was requested.
  void throw_if_requested();

  /// Is this the thread that may call the hook?
  bool is_own_thread() const { return pthread_equal(owner_, pthread_self()) != 0; }
  /// Did the hook return true? Any thread may ask.
  bool stopped() const { return stopped_.load(std::memory_order_relaxed); }

 private:
  const InterruptHook* hook_;
  const pthread_t owner_ = pthread_self();
  std::atomic<bool> stopped_{false};
  std::exception_ptr error_;
  std::chrono::steady_clock::time_point last_;
};

}  // namespace helve::runtime
