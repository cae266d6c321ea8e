// Copies of host arrays to the device and back.
// A kernel accepts NumPy arrays like tensors of the device; that costs copies, and the call waits for them.
#pragma once

#include <vector>

#include "device_frame.h"
#include "helve/runtime/interrupt.h"
#include "helve/runtime/plan.h"

namespace helve::runtime::cuda {

/// Returns when the stream has executed what was enqueued; it does not block in the driver, where Ctrl-C would have to
/// wait.
void wait_for(CudaStream stream, InterruptPoll& poll);

/// The host memory of all arguments as ranges that do not overlap: arguments that share memory, or interleave, also do
/// so on the device.
class Staging {
 public:
  /// Copies every range to the device and sets the frame's parameters. Device addresses equal host addresses modulo
  /// 256, so that alignments are preserved. UserError OutOfMemory.
  Staging(const Plan& plan, DeviceFrame& frame, CudaStream stream);

  /// Waits for the stream, then copies back the ranges that contain a written parameter.
  void finish(InterruptPoll& poll) const;

 private:
  struct Range {
    std::byte* begin;
    std::byte* end;
    bool written;
    int64_t offset;  ///< on the device
  };
  void collect(const Plan& plan, const DeviceFrame& frame);

  CudaStream stream_;
  std::byte* base_ = nullptr;
  std::vector<Range> ranges_;
};

}  // namespace helve::runtime::cuda
