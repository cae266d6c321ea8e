// Host arrays of a call on the device and back.
// A kernel takes NumPy arrays as it takes tensors of the device; that costs copies, and the call waits for them.
#pragma once

#include <vector>

#include "device_frame.h"
#include "helve/runtime/interrupt.h"
#include "helve/runtime/plan.h"

namespace helve::runtime::cuda {

/// Returns when the stream has done what was enqueued; not by a call that waits in the driver: Ctrl-C would wait along.
void wait_for(CudaStream stream, InterruptPoll& poll);

/// The host memory of all arguments as ranges that do not overlap: arguments that share memory, or interleave, share it
/// on the device as well.
class Staging {
 public:
  /// Copies every range to the device and points the frame's parameters there. Device addresses agree with host
  /// addresses modulo 256, so that alignments hold. UserError OutOfMemory.
  Staging(const Plan& plan, DeviceFrame& frame, CudaStream stream);

  /// Waits for the stream, then copies the ranges back in which a parameter is written.
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
