// Sections of machine code and the thread that watches them.
// The watch wakes every 50 ms while kernels run and signals the threads that have been in the same section since it
// last looked; a shorter call never receives a signal and pays for a setjmp and two exchanges.
#include "helve/runtime/machine_section.h"

#include <setjmp.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>
#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "helve/support/diagnostic.h"

namespace helve::runtime {

namespace {

constexpr std::chrono::milliseconds kTick{50};
constexpr int kIdleTicks = 20;  ///< without a section before the watch sleeps

enum State : int {
  Outside,
  Inside,
  Signalled,  ///< inside, and a signal has been sent
  Asking,     ///< the handler calls the hook
};

struct Section {
  explicit Section(InterruptPoll& p) : poll(p) {}
  InterruptPoll& poll;
  const bool asks = poll.is_own_thread();
  jmp_buf left;
};

/// The watch's view of one thread. Only the thread itself changes `section` and `entries`.
struct Slot {
  const pthread_t thread = pthread_self();
  std::atomic<int> state{Outside};
  std::atomic<Section*> section{nullptr};
  std::atomic<uint64_t> entries{0};
  std::atomic<bool> arrived{false};  ///< the signal came after the section had ended
  uint64_t seen = 0;                 ///< of the watch: entries when it last looked
};

thread_local Slot* own_slot = nullptr;

struct sigaction previous_action;

/// Called when the signal interrupts a thread in a section: asks, and abandons the code if the answer is yes.
void handle(int number, siginfo_t* info, void* context) {
  const int before = errno;
  if (info->si_code != SI_QUEUE || own_slot == nullptr || info->si_value.sival_ptr != own_slot) {
    if ((previous_action.sa_flags & SA_SIGINFO) != 0) {
      if (previous_action.sa_sigaction != nullptr) previous_action.sa_sigaction(number, info, context);
    } else if (previous_action.sa_handler != SIG_DFL && previous_action.sa_handler != SIG_IGN) {
      previous_action.sa_handler(number);
    }
    return;
  }
  Slot* const slot = own_slot;
  int expected = Signalled;
  if (!slot->state.compare_exchange_strong(expected, Asking)) {
    slot->arrived.store(true, std::memory_order_release);
    return;
  }
  Section* const section = slot->section.load(std::memory_order_relaxed);
#if defined(__x86_64__)
  // A handler starts with the default rounding and denormals; the code's own are in the frame that it interrupted.
  const auto* frame = static_cast<const ucontext_t*>(context);
  const unsigned control = frame->uc_mcontext.fpregs != nullptr ? frame->uc_mcontext.fpregs->mxcsr : _mm_getcsr();
#endif
  const bool stop = section->asks ? section->poll.requested() : section->poll.stopped();
  if (!stop) {
    slot->state.store(Inside, std::memory_order_release);
    errno = before;
    return;
  }
#if defined(__x86_64__)
  _mm_setcsr(control & ~0x3fU);  // without the exception flags
#endif
  // The signal is not blocked in its handler (SA_NODEFER), so the mask is unchanged.
  _longjmp(section->left, 1);
}

/// The slots of all threads that ran a section, and the thread that looks at them.
class Watch {
 public:
  Watch() {
    struct sigaction action{};
    action.sa_sigaction = handle;
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    struct sigaction present{};
    sigaction(kSectionSignal, nullptr, &present);
    if (present.sa_sigaction != handle) {
      previous_action = present;
      sigaction(kSectionSignal, &action, nullptr);
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      std::thread([this] { look(); }).detach();
    } catch (const std::system_error&) {
      // No thread can be created: kernels are stopped between blocks only.
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void add(Slot* slot) {
    std::lock_guard lock(mutex_);
    slots_.push_back(slot);
  }
  void remove(Slot* slot) {
    std::lock_guard lock(mutex_);
    std::erase(slots_, slot);
  }

  void wake() {
    if (!asleep_.load(std::memory_order_relaxed)) return;
    std::lock_guard lock(mutex_);
    asleep_.store(false, std::memory_order_relaxed);
    awake_.notify_one();
  }

 private:
  /// Sleep is announced one tick before it begins, so a thread that entered a section without seeing the announcement
  /// is noticed in time.
  void look() {
    std::unique_lock lock(mutex_);
    int idle = 0;
    while (true) {
      awake_.wait_for(lock, kTick);
      idle = visit() ? 0 : idle + 1;
      asleep_.store(idle >= kIdleTicks);
      if (idle <= kIdleTicks) continue;
      awake_.wait(lock, [this] { return !asleep_.load(); });
      idle = 0;
    }
  }

  /// Signals the threads that have not moved on; returns whether any thread ran a section since the last visit.
  bool visit() {
    bool busy = false;
    for (Slot* slot : slots_) {
      const uint64_t entries = slot->entries.load(std::memory_order_relaxed);
      const bool stayed = entries == slot->seen;
      const bool inside = slot->state.load(std::memory_order_acquire) != Outside;
      busy = busy || inside || !stayed;
      slot->seen = entries;
      if (inside && stayed) interrupt(*slot);
    }
    return busy;
  }

  void interrupt(Slot& slot) {
    struct sigaction present{};
    sigaction(kSectionSignal, nullptr, &present);
    if (present.sa_sigaction != handle) return;
    int expected = Inside;
    if (!slot.state.compare_exchange_strong(expected, Signalled)) return;
    if (pthread_sigqueue(slot.thread, kSectionSignal, {.sival_ptr = &slot}) == 0) return;
    expected = Signalled;
    if (!slot.state.compare_exchange_strong(expected, Inside)) slot.arrived.store(true, std::memory_order_release);
  }

  std::mutex mutex_;
  std::condition_variable awake_;
  std::atomic<bool> asleep_{false};
  std::vector<Slot*> slots_;
};

std::atomic<Watch*> current_watch{nullptr};

std::mutex making;

/// A child of fork has neither the watch nor other threads, so the parent's state is not used in it. No thread may
/// create the watch during a fork, since its creation would never be completed in the child.
void before_fork() { making.lock(); }
void in_parent() { making.unlock(); }
void in_child() {
  current_watch.store(nullptr);
  own_slot = nullptr;
  making.unlock();
}

// Registered when the module is loaded: at the first use it could be too late for a concurrent fork.
const bool fork_handlers_registered = pthread_atfork(before_fork, in_parent, in_child) == 0;

/// Never destroyed: its thread uses it until the process ends.
Watch& watch() {
  if (Watch* existing = current_watch.load(std::memory_order_acquire)) return *existing;
  std::lock_guard lock(making);
  if (Watch* existing = current_watch.load(std::memory_order_acquire)) return *existing;
  HELVE_CHECK(fork_handlers_registered, "fork handlers cannot be registered");
  auto* made = new Watch();
  current_watch.store(made, std::memory_order_release);
  return *made;
}

struct SlotOwner {
  Slot* slot = nullptr;
  ~SlotOwner() {
    if (slot == nullptr || own_slot != slot) return;
    watch().remove(slot);
    own_slot = nullptr;
    delete slot;
  }
};

Slot& slot_of_thread() {
  if (own_slot != nullptr) return *own_slot;
  thread_local SlotOwner owner;
  owner.slot = new Slot();
  watch().add(owner.slot);
  own_slot = owner.slot;
  return *own_slot;
}

bool blocks_signal() {
  sigset_t mask;
  sigemptyset(&mask);
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  return sigismember(&mask, kSectionSignal) == 1;
}

/// Takes back the watch's signal from a thread that blocks it. Signals of this kind do not queue, so at most one is
/// pending; one from somebody else remains pending.
void take_back() {
  sigset_t ours;
  sigemptyset(&ours);
  sigaddset(&ours, kSectionSignal);
  siginfo_t info;
  const timespec limit{.tv_sec = 0, .tv_nsec = std::chrono::nanoseconds(4 * kTick).count()};  // it may be on its way
  if (sigtimedwait(&ours, &info, &limit) != kSectionSignal) return;
  if (info.si_code == SI_QUEUE && info.si_value.sival_ptr == own_slot) return;
  (void)syscall(SYS_rt_tgsigqueueinfo, getpid(), gettid(), kSectionSignal, &info);
}

/// Waits for a signal that was meant for a section that has ended, so that it does not interrupt a system call of the
/// program.
void await_signal(Slot& slot) {
  if (blocks_signal()) return take_back();
  const auto limit = std::chrono::steady_clock::now() + 4 * kTick;
  while (!slot.arrived.load(std::memory_order_acquire) && std::chrono::steady_clock::now() < limit)
    std::this_thread::yield();
  slot.arrived.store(false, std::memory_order_relaxed);
}

}  // namespace

bool run_section(InterruptPoll& poll, MachineCode code) {
  Slot& slot = slot_of_thread();
  Section section(poll);
  // A section inside of another one is a call from the hook.
  Section* const outer = slot.section.load(std::memory_order_relaxed);
  const int outer_state = slot.state.load(std::memory_order_relaxed);
  slot.entries.store(slot.entries.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  slot.section.store(&section, std::memory_order_relaxed);
  watch().wake();  // takes a lock, which a jump out of the section would not release
  volatile bool whole = false;
  if (_setjmp(section.left) == 0) {
    slot.state.store(Inside, std::memory_order_release);
    code.call(code.context);
    whole = true;
  }
  const int state = slot.state.exchange(outer_state, std::memory_order_acq_rel);
  slot.section.store(outer, std::memory_order_relaxed);
  if (state == Signalled) await_signal(slot);
  return whole;
}

void leave_section() {
  // A signal on its way finds either the section, which it then leaves as well, or its end.
  HELVE_CHECK(own_slot != nullptr && own_slot->section.load(std::memory_order_relaxed) != nullptr, "no machine code");
  _longjmp(own_slot->section.load(std::memory_order_relaxed)->left, 1);
}

void run_outside_section(MachineCode code) {
  Slot* const slot = own_slot;
  const bool inside = slot != nullptr && slot->state.load(std::memory_order_relaxed) != Outside;
  if (!inside) return code.call(code.context);
  if (slot->state.exchange(Outside, std::memory_order_acq_rel) == Signalled) await_signal(*slot);
  code.call(code.context);
  // A thread that is outside more often than not would hardly be seen inside.
  const Section& section = *slot->section.load(std::memory_order_relaxed);
  const bool stop = section.asks ? section.poll.requested() : section.poll.stopped();
  slot->state.store(Inside, std::memory_order_release);
  if (stop) leave_section();
}

}  // namespace helve::runtime
