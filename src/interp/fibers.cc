// Switching between roles.
// What a name of a buffer stands for, and the loops that a checked run is in, are each role's own; all else in the
// frame is the block's.
#include "fibers.h"

#include <ucontext.h>

#include <exception>
#include <utility>

#include "trace.h"

namespace helve::interp {

namespace {

constexpr size_t kStackBytes = size_t{4} << 20;  // of which the system gives what is used

/// Ends a role whose block has failed.
struct Unwound {};

thread_local Fibers* current = nullptr;

}  // namespace

struct Fibers::Fiber {
  std::function<void()> body;
  std::function<bool()> ready;  ///< what it waits for; null: nothing
  ucontext_t here{}, back{};
  std::unique_ptr<char[]> stack;
  std::vector<Instance*> buffers;
  Trace::Stack loops;
  std::exception_ptr error;
  bool done = false;
};

Fibers::Fibers(Frame& frame, int64_t order) : frame_(frame), draw_(static_cast<uint64_t>(order)), order_(order) {}
Fibers::~Fibers() = default;

void Fibers::enter() {
  Fibers& self = *current;
  Fiber& fiber = *self.running_;
  try {
    if (!self.unwinding_) fiber.body();
  } catch (const Unwound&) {
  } catch (...) {
    fiber.error = std::current_exception();
  }
  fiber.done = true;
  self.suspend();
}

void Fibers::resume(Fiber& fiber) {
  Fibers* const around = std::exchange(current, this);
  running_ = &fiber;
  const std::vector<Instance*> buffers = std::exchange(frame_.buffers, fiber.buffers);
  if (frame_.trace) frame_.trace->swap_stack(fiber.loops);
  swapcontext(&fiber.back, &fiber.here);
  if (frame_.trace) frame_.trace->swap_stack(fiber.loops);
  fiber.buffers = std::exchange(frame_.buffers, buffers);
  running_ = nullptr;
  current = around;
}

void Fibers::suspend() {
  Fiber& fiber = *running_;
  swapcontext(&fiber.here, &fiber.back);
}

bool Fibers::await(const std::function<bool()>& ready) {
  Fiber& fiber = *running_;
  const bool yields = order_ > 1;  // a drawn order switches at every event
  if (!yields && ready()) return true;
  fiber.ready = ready;
  suspend();
  fiber.ready = nullptr;
  if (unwinding_) throw Unwound();
  return !stuck_;
}

Fibers::Fiber* Fibers::choose() {
  std::vector<Fiber*> able;
  for (const std::unique_ptr<Fiber>& each : all_) {
    if (!each->done && (!each->ready || each->ready())) able.push_back(each.get());
  }
  if (able.empty()) return nullptr;
  if (order_ == 0) return able.front();
  if (order_ == 1) return able.back();
  draw_ = draw_ * 6364136223846793005u + 1442695040888963407u;
  return able[(draw_ >> 33) % able.size()];
}

void Fibers::run(const std::vector<std::function<void()>>& bodies) {
  for (const std::function<void()>& body : bodies) {
    all_.push_back(std::make_unique<Fiber>());
    Fiber& fiber = *all_.back();
    fiber.body = body;
    fiber.stack.reset(new char[kStackBytes]);
    fiber.buffers = frame_.buffers;
    if (frame_.trace) fiber.loops = frame_.trace->stack();
    getcontext(&fiber.here);
    fiber.here.uc_stack.ss_sp = fiber.stack.get();
    fiber.here.uc_stack.ss_size = kStackBytes;
    fiber.here.uc_link = nullptr;
    makecontext(&fiber.here, &Fibers::enter, 0);
  }
  std::exception_ptr error;
  const auto left = [&]() -> Fiber* {
    for (const std::unique_ptr<Fiber>& each : all_) {
      if (!each->done) return each.get();
    }
    return nullptr;
  };
  while (left()) {
    Fiber* next = unwinding_ ? left() : choose();
    stuck_ = !next;
    if (!next) next = left();
    resume(*next);
    if (!next->error || error) continue;
    error = next->error;
    unwinding_ = true;
  }
  if (error) std::rethrow_exception(error);
}

}  // namespace helve::interp
