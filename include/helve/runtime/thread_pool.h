// The single pool of worker threads of the process, as a parallel loop.
// Kernels, collectives and host code share it, so that together they never use more threads than CPUs are available.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>

#include "helve/runtime/interrupt.h"

namespace helve::runtime {

constexpr int kThreadLimit = 1024;

/// HELVE_NUM_THREADS if set and not empty, otherwise what the affinity mask and the cgroup's CPU quota allow, at least
/// 1. UserError ThreadCount for a value that is not a number in [1, kThreadLimit].
int default_thread_count();

/// The number of threads that a parallel loop may use, including the caller: the value of set_num_threads, until then
/// the default at the first use. UserError ThreadCount.
int num_threads();

/// Changes that number. Waits for a running loop; must not be called inside one. UserError ThreadCount.
void set_num_threads(int64_t count);

/// CPUs granted by the cgroup's quota, rounded up; 0 if there is none. The paths are those of Linux.
int cgroup_cpu_limit(const std::string& membership = "/proc/self/cgroup", const std::string& root = "/sys/fs/cgroup");

/// A borrowed `void(int64_t begin, int64_t end, int worker)`.
struct RangeTask {
  void* context;
  void (*call)(void* context, int64_t begin, int64_t end, int worker);
};

/// See parallel_for.
void run_parallel(int64_t count, int64_t grain, RangeTask task, InterruptPoll* poll);

/// Calls `fn(begin, end, worker)` on disjoint ranges that cover [0, count) once, and returns when all have ended.
/// Ranges hold at least `grain` items, except the last. `worker` is in [0, num_threads()) and unique among ranges that
/// run at the same time in this loop; worker 0 is the caller. A nested loop, and a loop while another thread uses the
/// pool, run on the caller alone. After the first exception of a range no further ranges are started, and it is
/// rethrown at the caller, as is an interruption by `poll`.
template <class F>
void parallel_for(int64_t count, int64_t grain, F&& fn, InterruptPoll* poll = nullptr) {
  using Function = std::remove_reference_t<F>;
  RangeTask task{const_cast<void*>(static_cast<const void*>(&fn)),
                 [](void* context, int64_t begin, int64_t end, int worker) {
                   (*static_cast<Function*>(context))(begin, end, worker);
                 }};
  run_parallel(count, grain, task, poll);
}

/// Private memory of the calling thread for the lifetime of the lease: 4096-aligned, contents undefined, kept by the
/// thread for its next lease. Leases of one thread end in reverse order of their creation. Null for 0 bytes;
/// std::bad_alloc.
class ScratchLease {
 public:
  explicit ScratchLease(int64_t bytes);
  ~ScratchLease();
  ScratchLease(const ScratchLease&) = delete;
  ScratchLease& operator=(const ScratchLease&) = delete;

  std::byte* data() const { return data_; }

 private:
  std::byte* data_;
};

}  // namespace helve::runtime
