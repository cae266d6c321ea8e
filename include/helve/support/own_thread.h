// Work on a separate thread with its own stack.
// Programs have a bounded depth, so walks over them need a bounded stack; the calling thread may have less, since its
// creator chose the size. And a compile calls libraries that cannot be interrupted: the caller waits elsewhere, so that
// Ctrl-C ends the wait at once.
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

/// The stack of walks over a function of maximum depth, in bytes; that of a whole compile, code generators included.
inline constexpr size_t kWalkStack = size_t{2} << 20;
inline constexpr size_t kCompileStack = size_t{6} << 20;

/// Stack of an own thread, in bytes: twice what a main thread usually has.
inline constexpr size_t kOwnStack = size_t{16} << 20;

/// Bytes of the calling thread's stack that are free.
size_t stack_left();

/// Shared by the thread and its waiting caller; the last of them destroys it.
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

/// The value of `work()`, or what it throws. Signals are delivered to the threads of the user's program.
///
/// While it runs, the calling thread calls `ask`, if given, several times a second. An exception from it ends the wait:
/// the caller returns with it and the work is cancelled (support/cancel.h), so that the work must own all that it uses.
/// Work whose caller is cancelled is cancelled too, and waited for.
///
/// If no thread can be created, the work runs on the caller's, if `needed` bytes of stack are left; std::system_error
/// otherwise.
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

/// The value of `work()`, computed here if `bytes` of stack (at most kOwnStack) are left, else on a separate thread.
template <class F>
auto with_stack(size_t bytes, F&& work) {
  if (stack_left() >= bytes) return work();
  return on_own_thread(std::ref(work), {}, bytes);
}

}  // namespace helve
