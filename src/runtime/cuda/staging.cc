// Copies of host arrays around a call.
// The bytes between the elements of a strided array are copied too, and copied back unchanged.
#include "staging.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "helve/support/diagnostic.h"

namespace helve::runtime::cuda {

namespace {

constexpr int64_t kStep = 256;

}  // namespace

void Staging::collect(const Plan& plan, const DeviceFrame& frame) {
  for (size_t p = 0; p < plan.params.size(); ++p) {
    const BufferState& state = frame.buffers[p];
    if (state.high > state.low)
      ranges_.push_back({state.base + state.low, state.base + state.high, plan.params[p].written, 0});
  }
  std::ranges::sort(ranges_, {}, &Range::begin);
  size_t kept = 0;
  for (size_t r = 1; r < ranges_.size(); ++r) {
    Range& last = ranges_[kept];
    if (ranges_[r].begin < last.end) {
      last.end = std::max(last.end, ranges_[r].end);
      last.written = last.written || ranges_[r].written;
    } else {
      ranges_[++kept] = ranges_[r];
    }
  }
  if (!ranges_.empty()) ranges_.resize(kept + 1);
}

Staging::Staging(const Plan& plan, DeviceFrame& frame, CudaStream stream) : stream_(stream) {
  collect(plan, frame);
  int64_t total = 0;
  for (Range& range : ranges_) {
    range.offset = total + static_cast<int64_t>(reinterpret_cast<uintptr_t>(range.begin) % kStep);
    total = (range.offset + (range.end - range.begin) + kStep - 1) / kStep * kStep;
  }
  if (total > 0 && !frame.staged.reserve(total, kStep)) {
    throw UserError(Code::OutOfMemory, {},
                    {{"buffer", "copies of the host arrays"}, {"bytes", fmt::format("{}", total)}});
  }
  base_ = frame.staged.data();
  for (const Range& range : ranges_) {
    driver().copy_to_device(reinterpret_cast<DeviceAddress>(base_ + range.offset), range.begin,
                            static_cast<size_t>(range.end - range.begin), stream_);
  }
  for (size_t p = 0; p < plan.params.size(); ++p) {
    BufferState& state = frame.buffers[p];
    if (state.high <= state.low) {
      state.base = nullptr;
      continue;
    }
    const std::byte* first = state.base + state.low;
    const auto range = std::ranges::find_if(ranges_, [&](const Range& r) { return r.begin <= first && first < r.end; });
    state.base = base_ + range->offset + (state.base - range->begin);
  }
}

void wait_for(CudaStream stream, InterruptPoll& poll) {
  const Driver& cuda = driver();
  auto pause = std::chrono::microseconds(5);
  for (int result = cuda.stream_query.result(stream); result != kCudaSuccess;
       result = cuda.stream_query.result(stream)) {
    if (result != kCudaNotReady) fail_call(cuda.stream_query.name(), result);
    if (poll.active()) poll.throw_if_requested();
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, std::chrono::microseconds(1000));
  }
}

void Staging::finish(InterruptPoll& poll) const {
  const Driver& cuda = driver();
  wait_for(stream_, poll);
  for (const Range& range : ranges_) {
    if (!range.written) continue;
    cuda.copy_to_host(range.begin, reinterpret_cast<DeviceAddress>(base_ + range.offset),
                      static_cast<size_t>(range.end - range.begin), stream_);
  }
  cuda.stream_synchronize(stream_);
}

}  // namespace helve::runtime::cuda
