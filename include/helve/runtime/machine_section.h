// Machine code that Ctrl-C can stop at any instruction. A block may loop for hours and asks nobody. Asking inside its
// loops would cost every kernel; instead a signal stops the thread now and then, the user's hook is asked right there,
// and the code goes on as if nothing had been, or is left.
#pragma once

#include <signal.h>

#include <type_traits>

#include "helve/runtime/interrupt.h"

namespace helve::runtime {

/// What stops a thread in a section; one that blocks it is stopped between sections only.
constexpr int kSectionSignal = SIGURG;

/// A borrowed `void()`.
struct MachineCode {
  void* context;
  void (*call)(void* context);
};

/// See run_machine_code.
bool run_section(InterruptPoll& poll, MachineCode code);

/// Runs `code`, which holds no lock, owns nothing and calls nothing that does: it may be left in its middle. While it
/// lasts the thread of `poll` asks it several times a second; any other thread of the same call looks whether that one
/// was told to stop. Where the answer is yes `code` is left, and the result is false.
///
/// The signal is SIGURG, whose default is to be ignored: where the program has its own use of it, ours is told apart
/// and its own handler sees the rest. A program that takes the signal away again has its kernels stopped between blocks
/// only.
template <class F>
bool run_machine_code(InterruptPoll& poll, F&& code) {
  using Function = std::remove_reference_t<F>;
  if (!poll.active()) return code(), true;
  return run_section(poll, {const_cast<void*>(static_cast<const void*>(&code)),
                            [](void* context) { (*static_cast<Function*>(context))(); }});
}

}  // namespace helve::runtime
