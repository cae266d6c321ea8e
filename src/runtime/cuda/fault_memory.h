// Where kernels on a device leave their faults: memory of the host that the device can write.
// A trap would end the context; a launch that goes on, and a record that outlives a broken context, end one call.
#pragma once

#include <memory>
#include <vector>

#include "helve/runtime/cuda/driver.h"
#include "helve/runtime/plan.h"

namespace helve::runtime::cuda {

/// The faults of a plan's launches, one of each: what a kernel does with it, cuda_module.h says. Frames of calls share
/// it with the executor, since a graph may run its launches later.
class FaultMemory {
 public:
  /// Null if no launch can end with a fault.
  static std::shared_ptr<FaultMemory> of(const std::vector<const Launch*>& launches);
  ~FaultMemory();
  FaultMemory(const FaultMemory&) = delete;
  FaultMemory& operator=(const FaultMemory&) = delete;

  /// For the launch, as the device sees it.
  int64_t* of(const Launch& launch) const;

  /// UserError AssertionFailed for a fault that a launch of this plan has left, of the first launch if there are
  /// several; each is reported once.
  void throw_fault() const;

 private:
  explicit FaultMemory(const std::vector<const Launch*>& launches);

  std::vector<const Launch*> launches_;
  std::vector<std::vector<KernelReport>> reports_;  ///< of each: the executor may be gone
  int64_t* words_ = nullptr;
};

}  // namespace helve::runtime::cuda
