// The state of one call on a device, and the pool of such frames.
// Memory that work on a stream still uses is reused by later work on the same stream only.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "fault_memory.h"
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
  /// At least `bytes` bytes; if it grows, contents are lost, after all work of the device has ended. False if there is
  /// not enough memory.
  bool reserve(int64_t bytes, int64_t alignment);
  std::byte* data() const { return reinterpret_cast<std::byte*>(base_); }

 private:
  void release();

  DeviceAddress allocated_ = 0;  ///< by the driver
  DeviceAddress base_ = 0;  ///< aligned
  int64_t bytes_ = 0;  ///< from base_
};

struct DeviceFrame : Frame {
  explicit DeviceFrame(const Plan& plan) : Frame(plan), device_blocks(plan.buffers.size()) {}
  ~DeviceFrame();

  std::vector<DeviceBlock> device_blocks;  ///< memory of the plan's buffers
  DeviceBlock staged;  ///< host arguments
  DeviceBlock workspace;  ///< of cooperative launches
  DeviceBlock exchanged;  ///< of collectives in place
  std::vector<void*> parameters;  ///< a launch's arguments by address
  TensorMaps maps;
  std::shared_ptr<const FaultMemory> faults;  ///< of the launches, if they can end with one
  CudaEvent last_use = nullptr;  ///< recorded after the last call that was not captured
};

/// The stream of a call's work.
struct Situation {
  const Device& device;
  CudaStream stream;
  unsigned long long stream_id = 0;  ///< of a captured stream, its handle
  bool captured = false;
  unsigned long long capture_id = 0;
  CudaGraph graph = nullptr;  ///< the graph that is captured
};

/// Frames that no call uses. A frame of a captured call belongs to the graph, which contains its addresses, and is
/// returned when the graph and everything instantiated from it are gone.
class FramePool {
 public:
  FramePool();
  ~FramePool();
  FramePool(const FramePool&) = delete;
  FramePool& operator=(const FramePool&) = delete;

  /// A frame for a call on that stream, a warm one if possible: one of the same stream, or for a capture one of any
  /// stream of the device, for whose last call the graph then waits.
  std::unique_ptr<DeviceFrame> take(const Plan& plan, const Situation& where);
  /// Returns a frame. `holds_memory`: this call's work may still be running.
  void give(std::unique_ptr<DeviceFrame> frame, const Situation& where, bool holds_memory);
  /// Frees frames that neither a call nor a graph uses.
  void clear();

 private:
  struct State;
  struct GraphHold;
  static void graph_is_gone(void* hold);
  void attach_to_graph(const Situation& where);

  std::shared_ptr<State> state_;
};

}  // namespace helve::runtime::cuda
