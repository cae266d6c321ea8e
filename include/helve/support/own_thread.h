// Work on a thread and a stack of its own.
// Programs have a bounded depth, so the stack that a walk over one needs is bounded; the thread that calls may have
// less than that, since its creator chose the size. And a compile runs through libraries that nobody can interrupt: its
// caller waits elsewhere, so that Ctrl-C ends the wait at once.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <type_traits>
#include <utility>
#include <variant>

namespace helve {

/// Bytes that walks over a function of the greatest depth need; that a whole compile does, code generators included.
inline constexpr size_t kWalkStack = size_t{2} << 20;
inline constexpr size_t kCompileStack = size_t{6} << 20;

/// Stack of an own thread, in bytes: twice what a main thread usually has.
inline constexpr size_t kOwnStack = size_t{16} << 20;

/// Bytes of the calling thread's stack that are free.
size_t stack_left();

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
void run_and_wait(const std::shared_ptr<OwnWork>& work, const std::function<void()>& ask, size_t needed);

/// The value of `work()`, or what it throws. Signals stay with the threads of the user's program.
///
/// While it runs, the calling thread calls `ask`, if there is one, several times a second. What that throws ends the
/// wait: the caller goes with it and the work is cancelled (support/cancel.h), so that it must own all that it touches.
/// Work whose caller is cancelled is cancelled as well, and waited for.
///
/// Without a thread to be had the work runs on the caller's, where `needed` bytes of stack are left; std::system_error
/// where they are not.
template <class F>
auto on_own_thread(F work, const std::function<void()>& ask = {}, size_t needed = 0) {
  using Result = std::invoke_result_t<F&>;
  struct Work final : OwnWork {
    explicit Work(F f) : function(std::move(f)) {}
    void run() override {
      if constexpr (std::is_void_v<Result>)
        function();
      else
        result.emplace(function());
    }
    F function;
    std::optional<std::conditional_t<std::is_void_v<Result>, std::monostate, Result>> result;
  };
  const auto shared = std::make_shared<Work>(std::move(work));
  run_and_wait(shared, ask, needed);
  if constexpr (!std::is_void_v<Result>) return std::move(*shared->result);
}

/// The value of `work()`, computed here where `bytes` of stack (at most kOwnStack) are left, else on a thread of its
/// own.
template <class F>
auto with_stack(size_t bytes, F&& work) {
  if (stack_left() >= bytes) return work();
  return on_own_thread(std::ref(work), {}, bytes);
}

}  // namespace helve
