// The thread of one piece of work.
// It is made anew each time: that takes some tens of microseconds, and a compile takes milliseconds.
#include "helve/runtime/own_thread.h"

#include <pthread.h>
#include <signal.h>

#include "helve/support/cancel.h"

namespace helve::runtime {

namespace {

constexpr std::chrono::milliseconds kWait{20};

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

/// Whether a thread was made; signals stay with the threads of the user's program.
bool start(const std::shared_ptr<OwnWork>& work) {
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kOwnStack);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  auto argument = std::make_unique<std::shared_ptr<OwnWork>>(work);
  pthread_t thread{};
  const bool started = pthread_create(&thread, &attributes, thread_main, argument.get()) == 0;
  if (started) (void)argument.release();
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return started;
}

}  // namespace

void run_and_wait(const std::shared_ptr<OwnWork>& work, const InterruptHook* hook) {
  if (start(work)) {
    InterruptPoll poll(hook);
    std::unique_lock lock(work->mutex);
    while (!work->ended.wait_for(lock, kWait, [&] { return work->has_ended; })) {
      lock.unlock();
      if (poll.requested()) {
        work->cancelled.store(true, std::memory_order_relaxed);
        poll.throw_if_requested();
      }
      lock.lock();
    }
  } else {
    run(*work);
  }
  if (work->error) std::rethrow_exception(std::exchange(work->error, nullptr));
}

}  // namespace helve::runtime
