// Who handles signals, and how much stack a thread has.
// Both are asked at every call, so both are a look at the thread and no system call.
#include "waiting.h"

#include <pthread.h>

#include <cstdint>

namespace helve::python {

namespace py = pybind11;

namespace {

pthread_t main_thread;

bool is_main_thread() { return pthread_equal(main_thread, pthread_self()) != 0; }

bool raise_pending() {
  const Locked lock;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  return false;
}

/// The lowest address of this thread's stack; 0 where nobody knows.
uintptr_t stack_end() {
  pthread_attr_t attributes;
  void* lowest = nullptr;
  size_t size = 0;
  if (pthread_getattr_np(pthread_self(), &attributes) != 0) return 0;
  const bool known = pthread_attr_getstack(&attributes, &lowest, &size) == 0;
  pthread_attr_destroy(&attributes);
  return known ? reinterpret_cast<uintptr_t>(lowest) : 0;
}

}  // namespace

void remember_main_thread() {
  const auto main = py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  main_thread = static_cast<pthread_t>(main);
  pthread_atfork(nullptr, nullptr, [] { main_thread = pthread_self(); });
}

const runtime::InterruptHook* interrupt_hook() {
  static const runtime::InterruptHook hook = raise_pending;
  return is_main_thread() ? &hook : nullptr;
}

bool has_small_stack() {
  // A kernel keeps at most 64 KiB on the stack; the interpreter takes a frame a level of its program.
  constexpr uintptr_t kNeeded = 512 << 10;
  if (is_main_thread()) return false;
  thread_local const uintptr_t end = stack_end();
  return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - end < kNeeded;
}

}  // namespace helve::python
