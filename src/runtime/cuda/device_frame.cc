// Device memory of calls, and the frames that keep it warm.
// Freeing ignores failures: at the end of a process the driver may be gone before the last kernel is.
#include "device_frame.h"

#include <map>
#include <mutex>
#include <tuple>
#include <utility>

namespace helve::runtime::cuda {

namespace {

constexpr int64_t kAllocationAlignment = 256;  ///< of every address that the driver returns

template <class T>
T pop(std::vector<T>& list) {
  T out = std::move(list.back());
  list.pop_back();
  return out;
}

}  // namespace

bool DeviceBlock::reserve(int64_t bytes, int64_t alignment) {
  if (fits(bytes, alignment)) return true;
  release();
  const RelaxedCapture relaxed;
  const int64_t slack = alignment > kAllocationAlignment ? alignment : 0;
  DeviceAddress address = 0;
  const Driver& cuda = driver();
  const int result = cuda.memory_allocate.result(&address, static_cast<size_t>(bytes + slack));
  if (result == kCudaOutOfMemory) return false;
  if (result != kCudaSuccess) fail_call(cuda.memory_allocate.name(), result);
  const auto step = static_cast<DeviceAddress>(alignment);
  allocated_ = address;
  base_ = (address + step - 1) / step * step;
  bytes_ = bytes + slack - static_cast<int64_t>(base_ - address);
  return true;
}

void DeviceBlock::release() {
  if (allocated_ == 0) return;
  const RelaxedCapture relaxed;
  (void)driver().memory_free.result(allocated_);
  allocated_ = 0;
  bytes_ = 0;
}

DeviceFrame::~DeviceFrame() {
  if (last_use == nullptr) return;
  const RelaxedCapture relaxed;
  (void)driver().event_destroy.result(last_use);
}

using Frames = std::vector<std::unique_ptr<DeviceFrame>>;
using Place = std::pair<int, unsigned long long>;                         // device, stream
using Capture = std::tuple<int, unsigned long long, unsigned long long>;  // device, capture, stream

namespace {

/// Frames of graphs whose executor was destroyed first. The driver reports the end of a graph where its functions must
/// not be called, so the frames are freed when the next frame is taken or returned.
struct Orphans {
  std::mutex mutex;
  Frames frames;

  void free() {
    Frames gone;
    {
      std::lock_guard<std::mutex> lock(mutex);
      gone.swap(frames);
    }
  }
};

Orphans& orphans() {
  static Orphans& it = *new Orphans;  // never destroyed: a graph may outlive static objects
  return it;
}

}  // namespace

struct FramePool::State {
  std::mutex mutex;
  bool closed = false;  ///< the pool is gone, graphs remain
  std::map<Place, Frames> idle;
  std::map<int, Frames> returned;  ///< by graphs: no work uses them any more
  std::map<Capture, Frames> captured;

  std::unique_ptr<DeviceFrame> take_idle(const Situation& where) {
    const int ordinal = where.device.ordinal;
    if (!where.captured) {
      if (auto same = idle.find({ordinal, where.stream_id}); same != idle.end() && !same->second.empty())
        return pop(same->second);
    }
    if (auto free = returned.find(ordinal); free != returned.end() && !free->second.empty()) return pop(free->second);
    if (!where.captured) return nullptr;
    for (auto& [place, frames] : idle) {
      if (place.first == ordinal && !frames.empty()) return pop(frames);
    }
    return nullptr;
  }
};

struct FramePool::GraphHold {
  std::shared_ptr<State> state;
  Capture capture;
};

FramePool::FramePool() : state_(std::make_shared<State>()) {}

FramePool::~FramePool() {
  clear();
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->closed = true;
}

/// Called by the driver when the graph and its instances are gone; it must not call the driver.
void FramePool::graph_is_gone(void* data) {
  const std::unique_ptr<GraphHold> hold(static_cast<GraphHold*>(data));
  State& state = *hold->state;
  std::lock_guard<std::mutex> lock(state.mutex);
  const auto found = state.captured.find(hold->capture);
  if (found == state.captured.end()) return;
  std::lock_guard<std::mutex> orphans_lock(orphans().mutex);
  Frames& home = state.closed ? orphans().frames : state.returned[std::get<0>(hold->capture)];
  for (std::unique_ptr<DeviceFrame>& frame : found->second) home.push_back(std::move(frame));
  state.captured.erase(found);
}

void FramePool::attach_to_graph(const Situation& where) {
  const Capture capture{where.device.ordinal, where.capture_id, where.stream_id};
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    if (state_->captured.contains(capture)) return;
  }
  auto hold = std::make_unique<GraphHold>(state_, capture);
  CudaUserObject object = nullptr;
  const Driver& cuda = driver();
  cuda.user_object_create(&object, hold.get(), graph_is_gone, 1, kUserObjectNoDestructorSync);
  (void)hold.release();  // the object's
  cuda.graph_retain(where.graph, object, 1, kGraphUserObjectMove);
  std::lock_guard<std::mutex> lock(state_->mutex);
  state_->captured[capture];
}

std::unique_ptr<DeviceFrame> FramePool::take(const Plan& plan, const Situation& where) {
  orphans().free();
  if (where.captured) attach_to_graph(where);
  std::unique_ptr<DeviceFrame> frame;
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    if (where.captured) {
      Frames& own = state_->captured[{where.device.ordinal, where.capture_id, where.stream_id}];
      if (!own.empty()) return pop(own);
    }
    frame = state_->take_idle(where);
  }
  if (frame == nullptr) return std::make_unique<DeviceFrame>(plan);
  if (where.captured && frame->last_use != nullptr) {
    driver().stream_wait_event(where.stream, frame->last_use, kEventWaitExternal);
  }
  return frame;
}

void FramePool::give(std::unique_ptr<DeviceFrame> frame, const Situation& where, bool holds_memory) {
  if (holds_memory && !where.captured) {
    const Driver& cuda = driver();
    if (frame->last_use == nullptr) (void)cuda.event_create.result(&frame->last_use, kEventDisableTiming);
    if (frame->last_use != nullptr) (void)cuda.event_record.result(frame->last_use, where.stream);
  }
  std::lock_guard<std::mutex> lock(state_->mutex);
  if (where.captured) {
    state_->captured[{where.device.ordinal, where.capture_id, where.stream_id}].push_back(std::move(frame));
  } else {
    state_->idle[{where.device.ordinal, where.stream_id}].push_back(std::move(frame));
  }
}

void FramePool::clear() {
  std::map<Place, Frames> idle;
  std::map<int, Frames> returned;
  {
    std::lock_guard<std::mutex> lock(state_->mutex);
    idle.swap(state_->idle);
    returned.swap(state_->returned);
  }
  idle.clear();
  returned.clear();
  orphans().free();
}

}  // namespace helve::runtime::cuda
