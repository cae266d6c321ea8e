// The GPUs of processes that do steps together, one each, as NCCL reaches them.
// A communicator for all of them, and one for each set of axes over which a step extends, by a split of the first.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "helve/runtime/cuda/driver.h"
#include "helve/runtime/nccl/nccl_library.h"
#include "helve/runtime/process_group.h"
#include "helve/support/diagnostic.h"

namespace helve::runtime::nccl {

class Watch;

class NcclWorld {
 public:
  /// Nothing is loaded before the first use. `paths`: where NCCL may be, before the system's; `timeout`: seconds after
  /// which what does not end is an error.
  NcclWorld(std::shared_ptr<ProcessGroup> processes, std::vector<std::string> paths, double timeout);
  ~NcclWorld();

  ProcessGroup& processes() const { return *processes_; }
  /// The GPU of this process is this one, as at the first time. UserError PartDevice if that was another one.
  void take(int ordinal);
  /// The GPU, once it is known. UserError of the driver.
  const cuda::Device& device() const { return cuda::device(ordinal_); }
  const NcclLibrary& library() const { return nccl_library(paths_); }

  /// The communicator of members of the same group, in their order; null for one alone. Its first use is made by all
  /// processes together, each with its own group of the same step. UserError NcclMissing, SharedDevice, NcclCallFailed,
  /// DeviceStepLate, and those of ProcessGroup.
  NcclComm communicator(std::span<const int64_t> members, InterruptPoll& poll);

  /// Calls NCCL, with the GPU's context current. What may wait for other processes, as the first use of a connection
  /// does, goes to a thread of its own and ends at the deadline, and at Ctrl-C. Errors as of `communicator`.
  void call(const std::string& what, bool may_wait, InterruptPoll& poll, const std::function<void()>& code);
  /// UserError NcclCallFailed unless the call succeeded.
  void check(const char* function, NcclResult result, NcclComm comm) const;

  /// Watches what was put on the stream between the two: where it does not end within the timeout after it began, the
  /// process ends with an error that names the process that is late or lost, since nothing after it can be trusted.
  void begin_step(cuda::CudaStream stream);
  void end_step(const std::string& what, cuda::CudaStream stream);

  /// Ends the communicators; for the end of the process.
  void end();

 private:
  void connect(InterruptPoll& poll);
  /// What NCCL has found wrong by itself.
  NcclResult async_error();
  void check_devices(InterruptPoll& poll);
  void abort();
  UserError late(const std::string& what, const std::string& reason) const;
  [[noreturn]] void fail_late(const std::string& what, InterruptPoll& poll);

  std::shared_ptr<ProcessGroup> processes_;
  int ordinal_ = -1;  ///< until it is known
  std::vector<std::string> paths_;
  double timeout_;
  std::mutex mutex_;  ///< of the list
  std::vector<NcclComm> all_;  ///< the world's first
  std::map<std::vector<int64_t>, NcclComm> of_;  ///< by members
  std::unique_ptr<Watch> watch_;
};

}  // namespace helve::runtime::nccl
