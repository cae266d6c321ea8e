// Waiting outside the interpreter lock for what the core does.
// Python handles signals on its main thread alone: a wait of that thread asks now and then, every other one just waits.
#pragma once

#include <utility>

#include "helve/runtime/own_thread.h"
#include "interpreter_lock.h"

namespace helve::python {

/// Remembers the main thread, also in children of fork. Once, when the module is made.
void remember_main_thread();

/// Raises KeyboardInterrupt and whatever else the handlers of pending signals raise; null where this is not the main
/// thread, which alone handles signals.
const runtime::InterruptHook* interrupt_hook();

/// Whether this thread's stack has less than a call may need.
bool has_small_stack();

/// The value of `work()`, computed on a thread of its own. A signal whose handler raises ends the wait at once; `work`
/// owns what it touches, since it may be left alone.
template <class F>
auto wait_for(F work) {
  const runtime::InterruptHook* hook = interrupt_hook();
  const Unlocked unlocked;
  return runtime::on_own_thread(std::move(work), hook);
}

/// Runs `code` without the lock, on this thread unless its stack is too small.
template <class F>
void run_with_room(F&& code) {
  const bool small = has_small_stack();
  const Unlocked unlocked;
  if (!small) return code();
  runtime::on_own_thread([&] { return code(), true; }, nullptr);
}

}  // namespace helve::python
