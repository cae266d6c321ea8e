// The pool: workers join the open loop; the caller takes part and waits only for those that joined.
// So a sleeping worker never delays a short loop, which keeps fork and join at microseconds on busy machines.
#include "helve/runtime/thread_pool.h"

#include <fmt/format.h>
#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

#include "cpu_count.h"
#include "helve/runtime/machine_section.h"
#include "helve/support/diagnostic.h"

namespace helve::runtime {

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::microseconds kSpin{50};
constexpr std::chrono::microseconds kBusySpin{5};
constexpr std::chrono::milliseconds kPollWait{50};
constexpr std::chrono::milliseconds kSlice{1};
constexpr int64_t kChunksPerThread = 8;

/// Set by set_num_threads; 0 until then. Survives a fork.
std::atomic<int> chosen_threads{0};

/// Is this thread inside of a parallel loop?
thread_local bool inside_loop = false;

void relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Spins until `done()` or for kSpin; returns whether it is done. After the first microseconds it yields the CPU, which
/// the thread that it waits for may need.
template <class Done>
bool spin(bool allowed, Done&& done) {
  if (done()) return true;
  if (!allowed) return false;
  const auto start = Clock::now();
  while (true) {
    for (int i = 0; i < 16; ++i) {
      if (done()) return true;
      relax();
    }
    const auto elapsed = Clock::now() - start;
    if (elapsed > kSpin) return false;
    if (elapsed > kBusySpin) std::this_thread::yield();
  }
}

struct Job {
  RangeTask task{};
  int64_t count = 0;
  int64_t grain = 1;
  int64_t chunk = 1;
  int64_t chunks = 0;
  bool interruptible = false;
};

/// Runs [begin, end) in ranges of about a millisecond (of at least the grain), and checks `stop` after each.
template <class Stop>
void run_in_slices(const Job& job, int64_t begin, int64_t end, int worker, Stop&& stop) {
  int64_t size = job.grain;
  while (begin < end) {
    // If less than a grain would remain, the range includes it.
    const int64_t slice = end - begin - job.grain < size ? end - begin : size;
    const auto start = Clock::now();
    job.task.call(job.task.context, begin, begin + slice, worker);
    if (stop()) return;
    begin += slice;
    const auto elapsed = Clock::now() - start;
    if (elapsed < kSlice && size < end - begin) size *= 2;
    if (elapsed > 4 * kSlice) size = std::max(job.grain, size / 2);
  }
}

class Pool {
 public:
  Pool() : threads_(chosen_threads.load() > 0 ? chosen_threads.load() : default_thread_count()) {
    spinning_ = threads_ <= available_cpus();
  }

  Pool* inherited = nullptr;  ///< see forget_pool

  int threads() const { return threads_.load(std::memory_order_relaxed); }

  void set_threads(int count) {
    std::lock_guard<std::mutex> lock(caller_);
    stop_workers();
    threads_ = count;
    spinning_ = count <= available_cpus();
  }

  /// False if another thread uses the pool.
  bool run(const Job& job, InterruptPoll* poll) {
    std::unique_lock<std::mutex> lock(caller_, std::try_to_lock);
    if (!lock.owns_lock()) return false;
    start_workers();
    job_ = job;
    error_ = nullptr;
    failed_.store(false, std::memory_order_relaxed);
    halted_.store(false, std::memory_order_relaxed);
    next_.store(0, std::memory_order_relaxed);
    state_.store((++epoch_ << kEpochShift) | kOpen, std::memory_order_seq_cst);
    wake(std::min<int64_t>(job.chunks, threads()) - 1);
    take_chunks(0, poll);
    state_.fetch_and(~kOpen, std::memory_order_seq_cst);
    await_workers(poll);
    if (failed_.load(std::memory_order_acquire)) std::rethrow_exception(std::exchange(error_, nullptr));
    lock.unlock();
    if (poll != nullptr) poll->throw_if_requested();
    return true;
  }

 private:
  // The state word: workers that joined (low half), whether the job is open, the job's number. Only the caller opens
  // and closes; a worker joins an open job once and leaves when no chunk is left.
  static constexpr uint64_t kJoined = 0xffff;
  static constexpr uint64_t kOpen = 1 << 16;
  static constexpr int kEpochShift = 17;

  void start_workers() {
    if (!workers_.empty() || threads() == 1) return;
    // Signals are for the threads of the user's program, except those of the watch.
    sigset_t all, before;
    sigfillset(&all);
    sigdelset(&all, kSectionSignal);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    stop_.store(false);
    try {
      for (int worker = 1; worker < threads(); ++worker)
        workers_.emplace_back([this, worker, e = epoch_] { work(worker, e); });
    } catch (...) {
      pthread_sigmask(SIG_SETMASK, &before, nullptr);
      stop_workers();
      throw;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  void stop_workers() {
    {
      std::lock_guard<std::mutex> lock(park_);
      stop_.store(true);
    }
    work_ready_.notify_all();
    for (std::thread& worker : workers_) worker.join();
    workers_.clear();
  }

  void work(int worker, uint64_t seen) {
    inside_loop = true;
    auto ready = [&] {
      const uint64_t s = state_.load(std::memory_order_seq_cst);
      return stop_.load(std::memory_order_relaxed) || ((s & kOpen) != 0 && (s >> kEpochShift) != seen);
    };
    while (true) {
      if (!spin(spinning_.load(std::memory_order_relaxed), ready)) {
        std::unique_lock<std::mutex> lock(park_);
        sleepers_.fetch_add(1, std::memory_order_seq_cst);
        work_ready_.wait(lock, ready);
        sleepers_.fetch_sub(1, std::memory_order_seq_cst);
      }
      if (stop_.load()) return;
      uint64_t s = state_.load(std::memory_order_acquire);
      while ((s & kOpen) != 0 && (s >> kEpochShift) != seen) {
        if (!state_.compare_exchange_weak(s, s + 1, std::memory_order_acq_rel, std::memory_order_acquire)) continue;
        seen = s >> kEpochShift;
        take_chunks(worker, nullptr);
        leave();
        break;
      }
    }
  }

  void take_chunks(int worker, InterruptPoll* poll) {
    const Job job = job_;
    while (true) {
      const int64_t index = next_.fetch_add(1, std::memory_order_relaxed);
      if (index >= job.chunks) return;
      const int64_t begin = index * job.chunk;
      try {
        run_chunk(job, begin, begin + std::min(job.chunk, job.count - begin), worker, poll);
      } catch (...) {
        std::lock_guard<std::mutex> lock(error_mutex_);
        if (!error_) error_ = std::current_exception();
        failed_.store(true, std::memory_order_release);
        next_.store(job.chunks, std::memory_order_relaxed);
      }
      if (halted_.load(std::memory_order_relaxed)) return;
    }
  }

  /// Only the caller has a poll; the workers read its result in `halted_`.
  void run_chunk(const Job& job, int64_t begin, int64_t end, int worker, InterruptPoll* poll) {
    if (!job.interruptible) return job.task.call(job.task.context, begin, end, worker);
    run_in_slices(job, begin, end, worker, [&] {
      if (poll != nullptr && poll->requested()) halted_.store(true, std::memory_order_relaxed);
      return halted_.load(std::memory_order_relaxed);
    });
  }

  void leave() {
    const uint64_t before = state_.fetch_sub(1, std::memory_order_seq_cst);
    if ((before & (kJoined | kOpen)) == 1 && caller_parked_.load(std::memory_order_seq_cst)) {
      std::lock_guard<std::mutex> lock(park_);
      work_done_.notify_one();
    }
  }

  void wake(int64_t wanted) {
    const int64_t sleeping = sleepers_.load(std::memory_order_seq_cst);
    if (wanted <= 0 || sleeping == 0) return;
    std::lock_guard<std::mutex> lock(park_);
    if (wanted >= sleeping) {
      work_ready_.notify_all();
    } else {
      for (int64_t i = 0; i < wanted; ++i) work_ready_.notify_one();
    }
  }

  void await_workers(InterruptPoll* poll) {
    auto done = [this] { return (state_.load(std::memory_order_seq_cst) & kJoined) == 0; };
    if (spin(spinning_.load(std::memory_order_relaxed), done)) return;
    std::unique_lock<std::mutex> lock(park_);
    caller_parked_.store(true, std::memory_order_seq_cst);
    while (!done()) {
      if (poll == nullptr) {
        work_done_.wait(lock, done);
      } else if (!work_done_.wait_for(lock, kPollWait, done)) {
        lock.unlock();
        if (poll->requested()) halted_.store(true, std::memory_order_relaxed);  // thrown after the last worker left
        lock.lock();
      }
    }
    caller_parked_.store(false, std::memory_order_relaxed);
  }

  std::mutex caller_;  ///< held by the thread whose loop uses the pool
  std::atomic<int> threads_;
  std::atomic<bool> spinning_{true};  ///< not if there are more threads than CPUs
  std::vector<std::thread> workers_;
  uint64_t epoch_ = 0;

  alignas(64) std::atomic<uint64_t> state_{0};
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) Job job_;
  std::atomic<bool> failed_{false};
  std::atomic<bool> halted_{false};  ///< interrupted: no further chunk or slice begins
  std::mutex error_mutex_;
  std::exception_ptr error_;

  std::mutex park_;
  std::condition_variable work_ready_;
  std::condition_variable work_done_;
  std::atomic<int64_t> sleepers_{0};
  std::atomic<bool> caller_parked_{false};
  std::atomic<bool> stop_{false};
};

std::atomic<Pool*> current_pool{nullptr};

/// The pool of the parent process; kept, because threads of the parent may have been using it during the fork.
Pool* inherited_pool = nullptr;

/// A child of fork has none of the pool's threads and must not use its locks: it creates a pool of its own.
void forget_pool() {
  if (Pool* pool = current_pool.exchange(nullptr); pool != nullptr) {
    pool->inherited = inherited_pool;
    inherited_pool = pool;
  }
  inside_loop = false;
}

// Registered when the module is loaded: at the first use it could be too late for a concurrent fork.
const bool forget_pool_registered = pthread_atfork(nullptr, nullptr, forget_pool) == 0;

/// The pool is never destroyed: its threads sleep when the process ends, and no destructor waits for them.
Pool& pool() {
  Pool* existing = current_pool.load(std::memory_order_acquire);
  if (existing != nullptr) return *existing;
  HELVE_CHECK(forget_pool_registered, "fork handlers cannot be registered");
  Pool* made = new Pool();
  if (current_pool.compare_exchange_strong(existing, made)) return *made;
  delete made;
  return *existing;
}

/// Runs everything on the calling thread; one range if there is no interrupt hook.
void run_serial(const Job& job, InterruptPoll* poll) {
  if (poll == nullptr) return job.task.call(job.task.context, 0, job.count, 0);
  run_in_slices(job, 0, job.count, 0, [poll] { return poll->requested(); });
  poll->throw_if_requested();
}

}  // namespace

int num_threads() { return pool().threads(); }

void set_num_threads(int64_t count) {
  if (count < 1 || count > kThreadLimit) {
    throw UserError(
        Code::ThreadCount, {},
        {{"origin", "set_num_threads"}, {"value", fmt::format("{}", count)}, {"limit", int64_t{kThreadLimit}}});
  }
  HELVE_CHECK(!inside_loop, "the number of threads is set inside a parallel loop");
  chosen_threads = static_cast<int>(count);
  pool().set_threads(static_cast<int>(count));
}

void run_parallel(int64_t count, int64_t grain, RangeTask task, InterruptPoll* poll) {
  if (count <= 0) return;
  grain = std::max<int64_t>(grain, 1);
  if (poll != nullptr && !poll->active()) poll = nullptr;
  const bool alone = inside_loop || count <= grain;
  const int64_t threads = alone ? 1 : num_threads();
  const int64_t pieces = std::max<int64_t>(1, threads) * kChunksPerThread;
  const int64_t chunk = std::max(grain, count / pieces + (count % pieces != 0 ? 1 : 0));
  const Job job{task, count, grain, chunk, count / chunk + (count % chunk != 0 ? 1 : 0), poll != nullptr};
  if (alone || threads == 1 || job.chunks == 1) return run_serial(job, poll);
  struct Inside {
    Inside() { inside_loop = true; }
    ~Inside() { inside_loop = false; }
  };
  bool ran = false;
  {
    Inside inside;
    ran = pool().run(job, poll);
  }
  if (!ran) run_serial(job, poll);
}

}  // namespace helve::runtime
