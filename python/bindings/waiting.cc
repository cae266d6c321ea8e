// Who handles signals.
// It is asked at every call, so it is a look at the thread and no system call.
#include "waiting.h"

#include <pthread.h>

namespace helve::python {

namespace py = pybind11;

namespace {

pthread_t main_thread;

bool is_main_thread() { return pthread_equal(main_thread, pthread_self()) != 0; }

void raise_pending() {
  const Locked lock;
  if (PyErr_CheckSignals() != 0) throw py::error_already_set();
}

}  // namespace

void remember_main_thread() {
  const auto main = py::module_::import("threading").attr("main_thread")().attr("ident").cast<unsigned long>();
  main_thread = static_cast<pthread_t>(main);
  pthread_atfork(nullptr, nullptr, [] { main_thread = pthread_self(); });
}

std::function<void()> signal_check() {
  if (!is_main_thread()) return {};
  return raise_pending;
}

const runtime::InterruptHook* interrupt_hook() {
  static const runtime::InterruptHook hook = [] { return raise_pending(), false; };
  return is_main_thread() ? &hook : nullptr;
}

}  // namespace helve::python
