// Runs plans on a CUDA device; the counterpart of the CPU's executor.
// A warm call checks its arguments and launches; it does not allocate, load or wait, so it costs microseconds and can
// be captured in a CUDA graph.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "helve/runtime/cuda/compile.h"
#include "helve/runtime/cuda/device_communicator.h"
#include "helve/runtime/cuda/driver.h"
#include "helve/runtime/executor.h"
#include "helve/runtime/plan.h"

namespace helve::runtime::cuda {

/// The largest grid.
constexpr int64_t kGridLimit = (int64_t{1} << 31) - 1;

/// A plan on the devices that its cubin is for. The parameters of a kernel are, each of 8 bytes but the maps:
///   the address of each buffer of the launch, in its order; of a per-core buffer that of core 0's instance
///   the launch's scalars, then for each per-core buffer, in the order of buffers, the bytes between the instances of
///   consecutive cores
///   for a cooperative launch, the address of its words, all zero at its start
///   for a launch that can end with a fault, the address of zeroed words for it
///   the launch's tensor maps, except for the unaligned variant of a kernel
/// Blocks are numbered by blockIdx.x and threads by threadIdx.x.
class Executor {
 public:
  /// `kernels` names the cubin's kernels, in the order of the plan's numbers. Collectives of the plan are compiled
  /// here, by `toolchain`. InternalError for an unsound plan; what compile_cubin throws. No driver is needed.
  /// `unaligned` compiles the unaligned variant of the kernels, which assumes only an element's alignment and has no
  /// tensor maps. It is used by launches whose buffers do not have the alignment that the plan requires, or for which
  /// the driver cannot make the maps; it is compiled once, at the first such launch.
  /// `communicator`: the cores of the mesh are GPUs of processes, and it does the collectives; null: all cores are
  /// blocks of the device.
  Executor(Plan plan, Cubin cubin, std::vector<std::string> kernels, const CompileOptions& toolchain = {},
           std::function<Cubin()> unaligned = {}, std::shared_ptr<DeviceCommunicator> communicator = nullptr);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Enqueues the plan on the caller's stream. Arguments are in parameter order, borrowed for the call.
  /// Tensors on one CUDA device: returns when everything is enqueued; they must live until the stream has executed the
  /// call.
  /// Host arrays only: they are copied to device 0 and the written ones back; returns when the results are written.
  /// During a capture, memory that the plan allocates must exist from an earlier call; it belongs to the graph until
  /// that is destroyed, and outlives the executor.
  /// A fault of the program ends the call if it waits for the device: with host arrays, or where a value of the device
  /// decides what comes next. Otherwise the next call of the executor ends with it. The launch goes on in any case.
  /// UserError: those of runtime::Executor::call for arguments, 9xx for the device; Interrupted while it waits.
  void call(std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars = {},
            CudaStream stream = nullptr, const CallOptions& options = {}) const;

  const Plan& plan() const;
  const Cubin& cubin() const;

  /// Frees the memory kept from earlier calls, except that of running calls and of graphs.
  void release_memory() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace helve::runtime::cuda
