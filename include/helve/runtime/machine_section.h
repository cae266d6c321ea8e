// Machine code that Ctrl-C can stop at any instruction. A block may loop for hours without a check. Checks inside its
// loops would cost every kernel; instead a signal interrupts the thread now and then, its handler calls the user's
// hook, and the code is resumed or abandoned.
#pragma once

#include <signal.h>

#include <type_traits>

#include "helve/runtime/interrupt.h"

namespace helve::runtime {

/// The signal that stops a thread in a section; a thread that blocks it is stopped between sections only.
constexpr int kSectionSignal = SIGURG;

/// A borrowed `void()`.
struct MachineCode {
  void* context;
  void (*call)(void* context);
};

/// See run_machine_code.
bool run_section(InterruptPoll& poll, MachineCode code);

/// Abandons the machine code that this thread runs in a section: run_machine_code returns false.
[[noreturn]] void leave_section();

/// Runs `code`, which machine code of this thread has called and which may hold locks and own what it likes: nothing
/// abandons it. Then the call is asked whether it should stop, and if so does not come back.
void run_outside_section(MachineCode code);

/// Runs `code`, which holds no lock, owns nothing and calls nothing that does: it may be abandoned anywhere. Meanwhile
/// the thread of `poll` asks it several times a second; other threads of the same call check whether that one was told
/// to stop. If so, `code` is abandoned, and the result is false.
///
/// The signal is SIGURG, which is ignored by default: if the program uses it too, our signals are recognised and all
/// others passed to its own handler. If the program replaces the handler, kernels are stopped between blocks only.
/// Code that `may_leave` by itself always runs in a section.
template <class F>
bool run_machine_code(InterruptPoll& poll, F&& code, bool may_leave = false) {
  using Function = std::remove_reference_t<F>;
  if (!poll.active() && !may_leave) return code(), true;
  return run_section(poll, {const_cast<void*>(static_cast<const void*>(&code)),
                            [](void* context) { (*static_cast<Function*>(context))(); }});
}

}  // namespace helve::runtime
