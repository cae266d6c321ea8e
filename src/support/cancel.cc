// The flag of the work that a thread does.
// It belongs to the thread and not to the arguments of every pass: whoever looks does not know who waits.
#include "helve/support/cancel.h"

namespace helve {

namespace {
thread_local const std::atomic<bool>* current = nullptr;
}

CancelScope::CancelScope(const std::atomic<bool>& flag) : outer_(current) { current = &flag; }
CancelScope::~CancelScope() { current = outer_; }

bool is_cancelled() { return current != nullptr && current->load(std::memory_order_relaxed); }

void throw_if_cancelled() {
  if (is_cancelled()) throw Cancelled();
}

}  // namespace helve
