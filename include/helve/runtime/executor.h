// Runs plans: checks a call's arguments, then allocates, launches, communicates, loops and branches.
// One executor serves any number of threads; what a call allocates is kept for the next call.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <variant>
#include <vector>

#include "helve/runtime/communicator.h"
#include "helve/runtime/interrupt.h"
#include "helve/runtime/plan.h"
#include "helve/support/span.h"

namespace helve::runtime {

/// A compiled kernel: runs blocks [begin, end) of a launch. It does not throw.
///   buffers  one address for each buffer of the launch; of a per-core buffer that of core 0's instance
///   scalars  the launch's scalars, then for each per-core buffer, in the order of `buffers`, the bytes between the
///            instances of consecutive cores
///   scratch  the launch's scratch_bytes of private memory, 4096-aligned; null for 0 bytes
using KernelEntry = void (*)(void* const* buffers, const int64_t* scalars, int64_t begin, int64_t end,
                             std::byte* scratch);

struct TensorArgument {
  const DLTensor* tensor;
  bool read_only = false;  ///< DLPACK_FLAG_BITMASK_READ_ONLY of the exporter
};

/// An integer (or bool as 0 and 1) or a real number. Integers are accepted for float parameters, not the reverse.
/// uint64_t is for values beyond int64_t.
using ScalarArgument = std::variant<int64_t, double, uint64_t>;

struct CallOptions {
  const InterruptHook* interrupt = nullptr;  ///< polled between steps and in waits, on the calling thread
  Span span;                                 ///< of the call; faults of arguments are reported there
  void* stream = nullptr;                    ///< CUDA: the caller's stream; null is the legacy default stream
  bool* may_have_written = nullptr;          ///< set before the first step that may write to an argument
  int64_t multiprocessors = 0;               ///< how many blocks run side by side; 0: the machine's own number
  std::span<const size_t> new_arrays = {};  ///< parameters whose arguments have no contents yet, which checks ask
};

class Executor {
 public:
  /// A null `communicator` is the host's. InternalError for an invalid plan.
  Executor(Plan plan, std::vector<KernelEntry> kernels, std::shared_ptr<Communicator> communicator = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Runs the plan and returns when it is complete. Arguments are in parameter order, borrowed for the call. UserError
  /// 601-624 for arguments that are invalid or lead to a fault; Interrupted, or what the hook threw.
  void call(std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars = {},
            const CallOptions& options = {}) const;

  const Plan& plan() const;

  /// Frees the memory kept from earlier calls, except that of running calls.
  void release_memory() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace helve::runtime
