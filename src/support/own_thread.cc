// The thread of one piece of work.
// It is made anew each time: that takes some tens of microseconds, and a compile takes milliseconds. Where the stack of
// a thread ends is asked of the system once.
#include "helve/support/own_thread.h"

#include <pthread.h>
#include <signal.h>

#include <chrono>
#include <cstdint>
#include <system_error>

#include "helve/support/cancel.h"

namespace helve {

namespace {

constexpr std::chrono::milliseconds kWait{20};

/// The lowest address of this thread's stack; 0 where the system does not say.
uintptr_t stack_end() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* end = nullptr;
  size_t size = 0;
  const bool known = pthread_attr_getstack(&attributes, &end, &size) == 0;
  pthread_attr_destroy(&attributes);
  return known ? reinterpret_cast<uintptr_t>(end) : 0;
}

void run(OwnWork& work) {
  const CancelScope scope(work.cancelled);
  std::exception_ptr error;
  try {
    work.run();
  } catch (...) {
    error = std::current_exception();
  }
  std::lock_guard lock(work.mutex);
  work.error = std::move(error);
  work.has_ended = true;
  work.ended.notify_one();
}

void* thread_main(void* argument) {
  const std::unique_ptr<std::shared_ptr<OwnWork>> work(static_cast<std::shared_ptr<OwnWork>*>(argument));
  run(**work);
  return nullptr;
}

/// Starts the thread, with all signals blocked; 0, or the error.
int start(const std::shared_ptr<OwnWork>& work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kOwnStack);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  auto argument = std::make_unique<std::shared_ptr<OwnWork>>(work);
  pthread_t thread{};
  const int error = pthread_create(&thread, &attributes, thread_main, argument.get());
  if (error == 0) (void)argument.release();
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return error;
}

void cancel(OwnWork& work) { work.cancelled.store(true, std::memory_order_relaxed); }

}  // namespace

size_t stack_left() {
  thread_local const uintptr_t end = stack_end();
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here > end ? here - end : 0;
}

void run_and_wait(const std::shared_ptr<OwnWork>& work, const std::function<void()>& ask, size_t needed) {
  if (is_cancelled()) cancel(*work);
  if (const int error = start(work); error != 0) {
    if (stack_left() < needed) throw std::system_error(error, std::generic_category(), "a thread with a larger stack");
    return work->run();
  }
  std::unique_lock lock(work->mutex);
  while (!work->ended.wait_for(lock, kWait, [&] { return work->has_ended; })) {
    lock.unlock();
    if (is_cancelled()) cancel(*work);
    try {
      if (ask) ask();
    } catch (...) {
      cancel(*work);
      throw;
    }
    lock.lock();
  }
  if (work->error) std::rethrow_exception(std::exchange(work->error, nullptr));
}

}  // namespace helve
