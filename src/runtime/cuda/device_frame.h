// What one call on a device works on, and where frames wait between calls.
// Memory that a stream's work still uses is given to later work of the same stream only.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "frame.h"
#include "helve/runtime/cuda/driver.h"
#include "tensor_maps.h"

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
  DeviceAddress base_ = 0;  ///< aligned
  int64_t bytes_ = 0;  ///< from base_
};

struct DeviceFrame : Frame {
  explicit DeviceFrame(const Plan& plan) : Frame(plan), device_blocks(plan.buffers.size()) {}
  ~DeviceFrame();

  std::vector<DeviceBlock> device_blocks;  ///< memory behind the plan's buffers
  DeviceBlock staged;  ///< host arguments
  DeviceBlock workspace;  ///< of cooperative launches
  DeviceBlock exchanged;  ///< of collectives in place
  std::vector<void*> parameters;  ///< a launch's arguments by address
  TensorMaps maps;
  CudaEvent last_use = nullptr;  ///< recorded after the last call that was not captured
};

/// Where a call's work goes.
struct Situation {
  const Device& device;
  CudaStream stream;
  unsigned long long stream_id = 0;  ///< of a captured stream, its handle
  bool captured = false;
  unsigned long long capture_id = 0;
  CudaGraph graph = nullptr;  ///< that the capture writes
};

/// Frames that no call uses. A frame of a captured call belongs to the graph, which holds its addresses, and comes back
/// when the graph and all that was made of it are gone.
class FramePool {
 public:
  FramePool();
  ~FramePool();
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  /// A frame for a call there, warm if there is one: of the same stream, or for a capture of any stream of the device,
  /// after whose last call the graph then waits.
  std::unique_ptr<DeviceFrame> take(const Plan& plan, const Situation& where);
  /// Gives a frame back. `holds_memory`: later work may meet what this call left running.
  void give(std::unique_ptr<DeviceFrame> frame, const Situation& where, bool holds_memory);
  /// Frees what neither a call nor a graph uses.
  void clear();

 private:
  struct State;
  struct GraphHold;
  static void graph_is_gone(void* hold);
  void attach_to_graph(const Situation& where);

  std::shared_ptr<State> state_;
};

}  // namespace helve::runtime::cuda
