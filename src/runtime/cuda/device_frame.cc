// Device memory of calls, and the frames that keep it warm.
// Freeing ignores failures: at the end of a process the driver may be gone before the last kernel is.
#include "device_frame.h"

namespace helve::runtime::cuda {

namespace {

constexpr int64_t kAllocationAlignment = 256;  ///< that of every address the driver gives

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
  if (allocated_ != 0) (void)driver().memory_free.result(allocated_);
  allocated_ = 0;
  bytes_ = 0;
}

DeviceFrame::~DeviceFrame() {
  if (last_use != nullptr) (void)driver().event_destroy.result(last_use);
}

std::unique_ptr<DeviceFrame> FramePool::take_idle(const Situation& where) {
  if (!where.captured) {
    const auto same = idle_.find({where.device.ordinal, where.stream_id});
    return same != idle_.end() && !same->second.empty() ? pop(same->second) : nullptr;
  }
  for (auto& [place, frames] : idle_) {
    if (place.first == where.device.ordinal && !frames.empty()) return pop(frames);
  }
  return nullptr;
}

std::unique_ptr<DeviceFrame> FramePool::take(const Plan& plan, const Situation& where) {
  std::unique_ptr<DeviceFrame> frame;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (where.captured) {
      const auto own = captured_.find({where.device.ordinal, where.capture_id, where.stream_id});
      if (own != captured_.end() && !own->second.empty()) return pop(own->second);
    }
    frame = take_idle(where);
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
  std::lock_guard<std::mutex> lock(mutex_);
  if (where.captured) {
    captured_[{where.device.ordinal, where.capture_id, where.stream_id}].push_back(std::move(frame));
  } else {
    idle_[{where.device.ordinal, where.stream_id}].push_back(std::move(frame));
  }
}

void FramePool::clear() {
  std::lock_guard<std::mutex> lock(mutex_);
  idle_.clear();
}

}  // namespace helve::runtime::cuda
