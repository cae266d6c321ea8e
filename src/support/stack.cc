// Work that recurses, on a stack that is large enough for it.
// Where the stack ends is asked of the system once a thread.
#include "helve/support/stack.h"

#include <pthread.h>

#include <cstdint>
#include <exception>
#include <system_error>

namespace helve {

namespace {

/// The lowest address of this thread's stack; 0 where the system does not say.
uintptr_t stack_end() {
  pthread_attr_t attributes;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  void* end = nullptr;
  size_t size = 0;
  pthread_attr_getstack(&attributes, &end, &size);
  pthread_attr_destroy(&attributes);
  return reinterpret_cast<uintptr_t>(end);
}

size_t stack_left() {
  thread_local const uintptr_t end = stack_end();
  const auto here = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  return here > end ? here - end : 0;
}

struct Job {
  const std::function<void()>& work;
  std::exception_ptr failure;
};

void* run(void* argument) {
  Job& job = *static_cast<Job*>(argument);
  try {
    job.work();
  } catch (...) {
    job.failure = std::current_exception();
  }
  return nullptr;
}

void require(int error) {
  if (error != 0) throw std::system_error(error, std::generic_category(), "a thread to compile on");
}

}  // namespace

void run_with_stack(size_t bytes, const std::function<void()>& work) {
  if (stack_left() >= bytes) return work();
  Job job{work, nullptr};
  constexpr size_t kOwnFrames = 64 << 10;  // of the system, below the work
  pthread_attr_t attributes;
  require(pthread_attr_init(&attributes));
  pthread_t thread;
  int error = pthread_attr_setstacksize(&attributes, bytes + kOwnFrames);
  if (error == 0) error = pthread_create(&thread, &attributes, run, &job);
  pthread_attr_destroy(&attributes);
  require(error);
  pthread_join(thread, nullptr);
  if (job.failure) std::rethrow_exception(job.failure);
}

}  // namespace helve
