// What one call on a device works on, and where frames wait between calls.
// Memory that a stream's work still uses is given to later work of the same stream only.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <tuple>
#include <utility>
#include <vector>

#include "frame.h"
#include "helve/runtime/cuda/driver.h"

namespace helve::runtime::cuda {

/// Device memory with an alignment of its own.
class DeviceBlock {
 public:
  DeviceBlock() = default;
  DeviceBlock(DeviceBlock&& o) noexcept
      : allocated_(std::exchange(o.allocated_, 0)), base_(o.base_), bytes_(std::exchange(o.bytes_, 0)) {}
  DeviceBlock& operator=(DeviceBlock&&) = delete;
  ~DeviceBlock() { release(); }

  bool fits(int64_t bytes, int64_t alignment) const {
    return allocated_ != 0 && bytes <= bytes_ && base_ % static_cast<DeviceAddress>(alignment) == 0;
  }
  /// At least `bytes` bytes; contents are lost where it grows, after all work of the device has ended. False when there
  /// is no such memory.
  bool reserve(int64_t bytes, int64_t alignment);
  std::byte* data() const { return reinterpret_cast<std::byte*>(base_); }

 private:
  void release();

  DeviceAddress allocated_ = 0;  ///< what the driver gave
  DeviceAddress base_ = 0;       ///< aligned
  int64_t bytes_ = 0;            ///< from base_
};

struct DeviceFrame : Frame {
  explicit DeviceFrame(const Plan& plan) : Frame(plan), device_blocks(plan.buffers.size()) {}
  ~DeviceFrame();

  std::vector<DeviceBlock> device_blocks;  ///< memory behind the plan's buffers
  DeviceBlock staged;                      ///< host arguments
  DeviceBlock workspace;                   ///< of cooperative launches
  DeviceBlock exchanged;                   ///< of collectives in place
  std::vector<void*> parameters;           ///< a launch's arguments by address
  CudaEvent last_use = nullptr;            ///< recorded after the last call that was not captured
};

/// Where a call's work goes.
struct Situation {
  const Device& device;
  CudaStream stream;
  unsigned long long stream_id = 0;  ///< of a captured stream, its handle
  bool captured = false;
  unsigned long long capture_id = 0;
};

/// Frames that no call uses. A frame of a captured call belongs to that capture for good, since the graph holds its
/// addresses.
class FramePool {
 public:
  /// A frame for a call there, warm if there is one: of the same stream, or for a capture of any stream of the device,
  /// after whose last call the graph then waits.
  std::unique_ptr<DeviceFrame> take(const Plan& plan, const Situation& where);
  /// Gives a frame back. `holds_memory`: later work may meet what this call left running.
  void give(std::unique_ptr<DeviceFrame> frame, const Situation& where, bool holds_memory);
  void clear();

 private:
  using Place = std::pair<int, unsigned long long>;                             // device, stream
  using Capture = std::tuple<int, unsigned long long, unsigned long long>;      // device, capture, stream
  using Frames = std::vector<std::unique_ptr<DeviceFrame>>;

  std::unique_ptr<DeviceFrame> take_idle(const Situation& where);

  std::mutex mutex_;
  std::map<Place, Frames> idle_;
  std::map<Capture, Frames> captured_;
};

}  // namespace helve::runtime::cuda
