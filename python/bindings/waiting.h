// Waiting outside the interpreter lock for what the core does.
// Python handles signals on its main thread alone: a wait of that thread asks now and then, every other one just waits.
#pragma once

#include <functional>
#include <utility>

#include "helve/runtime/interrupt.h"
#include "helve/support/own_thread.h"
#include "interpreter_lock.h"

namespace helve::python {

/// Remembers the main thread, also in children of fork. Once, when the module is made.
void remember_main_thread();

/// What raises KeyboardInterrupt and whatever else the handlers of pending signals raise; empty where this is not the
/// main thread, which alone handles signals.
std::function<void()> signal_check();

/// The same for calls of kernels, which poll it; null instead of empty.
const runtime::InterruptHook* interrupt_hook();

/// The value of `work()`, computed on a thread of its own. A signal whose handler raises ends the wait at once; `work`
/// owns what it touches, since it may be left alone.
template <class F>
auto wait_for(F work) {
  const std::function<void()> check = signal_check();
  const Unlocked unlocked;
  return on_own_thread(std::move(work), check);
}

/// Runs `code` without the lock, on this thread unless its stack is too small.
template <class F>
void run_with_room(F&& code) {
  // A kernel keeps at most 64 KiB on the stack; the interpreter takes a frame a level of its program.
  constexpr size_t kCallStack = 512 << 10;
  const Unlocked unlocked;
  with_stack(kCallStack, code);
}

}  // namespace helve::python
