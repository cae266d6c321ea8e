// Runs plans on a CUDA device: the sibling of the CPU's executor.
// A warm call checks its arguments and launches; it allocates nothing, loads nothing and waits for nothing, so that it
// costs microseconds and can be captured in a CUDA graph.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "helve/runtime/cuda/compile.h"
#include "helve/runtime/cuda/driver.h"
#include "helve/runtime/executor.h"
#include "helve/runtime/plan.h"

namespace helve::runtime::cuda {

/// Words of the workspace that a cooperative launch is given, all zero at its start.
constexpr int64_t kWorkspaceWords = 4096;

/// The largest grid.
constexpr int64_t kGridLimit = (int64_t{1} << 31) - 1;

/// A plan on the devices that its cubin is for. The parameters of a kernel are, each of 8 bytes but the maps:
///   the address of each buffer of the launch, in its order; of a per-core buffer that of core 0's instance
///   the launch's scalars, then for each per-core buffer, in the order of buffers, the bytes between the instances of
///   consecutive cores
///   for a cooperative launch, the address of the workspace
///   the launch's tensor maps, unless the kernel is a narrow one
/// Blocks stand on gridDim.x and threads on blockDim.x.
class Executor {
 public:
  /// `kernels` names the cubin's kernels, in the order of the plan's numbers. Collectives of the plan are compiled
  /// here, by `toolchain`. InternalError for an unsound plan; what compile_cubin throws. No driver is needed.
  /// `narrow` makes a cubin of the same kernels that rely on the alignment of an element only and have no tensor maps:
  /// a launch takes them whose buffers are not aligned as the plan says, or of which the driver makes no such maps. It
  /// is called at most once, at the first such launch.
  Executor(Plan plan, Cubin cubin, std::vector<std::string> kernels, const CompileOptions& toolchain = {},
           std::function<Cubin()> narrow = {});
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Enqueues the plan on the caller's stream. Arguments in parameter order, borrowed for the call.
  /// Tensors on one CUDA device: returns when all is enqueued; they must live until the stream has passed the call.
  /// Host arrays only: they are copied to device 0 and the written ones back; returns when the results are written.
  /// While the stream is captured, what the plan allocates must be there from an earlier call; it belongs to the graph
  /// until that is destroyed, and survives the executor.
  /// UserError: those of runtime::Executor::call for arguments, 9xx for the device; Interrupted while it waits.
  void call(std::span<const TensorArgument> tensors, std::span<const ScalarArgument> scalars = {},
            CudaStream stream = nullptr, const CallOptions& options = {}) const;

  const Plan& plan() const;
  const Cubin& cubin() const;

  /// Frees the memory kept from earlier calls, that of running calls and of graphs aside.
  void release_memory() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace helve::runtime::cuda
