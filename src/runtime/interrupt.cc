// The throttled poll of an interrupt hook.
// A hook may take the interpreter lock of its language, which costs more than a small kernel.
#include "helve/runtime/interrupt.h"

namespace helve::runtime {

namespace {
constexpr std::chrono::milliseconds kInterval{10};
}

InterruptPoll::InterruptPoll(const InterruptHook* hook) : hook_(hook != nullptr && *hook ? hook : nullptr) {
  if (hook_ != nullptr) last_ = std::chrono::steady_clock::now();
}

bool InterruptPoll::requested() noexcept {
  if (hook_ == nullptr || stopped()) return stopped();
  const auto now = std::chrono::steady_clock::now();
  if (now - last_ < kInterval) return false;
  last_ = now;
  try {
    stopped_ = (*hook_)();
  } catch (...) {
    error_ = std::current_exception();
    stopped_ = true;
  }
  return stopped();
}

void InterruptPoll::throw_if_requested() {
  if (!requested()) return;
  if (error_) std::rethrow_exception(error_);
  throw Interrupted();
}

}  // namespace helve::runtime
