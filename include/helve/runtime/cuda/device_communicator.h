// Collectives between cores of which each is the GPU of a process.
// The executor of plans on a device knows this interface; what carries the bytes stands behind it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "helve/runtime/communicator.h"
#include "helve/runtime/cuda/driver.h"

namespace helve::runtime::cuda {

class DeviceCommunicator {
 public:
  virtual ~DeviceCommunicator() = default;

  /// The core that this process is.
  virtual std::span<const int64_t> cores() const = 0;

  /// Around a call of a plan on the device. UserError for a device that is not that of earlier calls; where processes
  /// do not meet; ForbiddenInCapture for a first call that is `captured`.
  virtual void begin_call(const Plan& plan, const Device& device, bool captured, InterruptPoll& poll) = 0;
  virtual void end_call(bool is_well) = 0;

  /// Bytes of the device that `run` works in besides source and destination.
  virtual int64_t room_of(CollectiveKind kind, const CollectiveRequest& request) = 0;

  /// Puts the collective on the stream, between begin_call and end_call. `room`: of so many bytes, or null for none.
  virtual void run(CollectiveKind kind, const CollectiveRequest& request, std::byte* room, CudaStream stream,
                   bool captured) = 0;
};

}  // namespace helve::runtime::cuda
