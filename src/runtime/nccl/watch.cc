// The thread that watches.
// It sleeps while nothing is under way, and asks events, never a stream, so that it disturbs no capture.
#include "watch.h"

namespace helve::runtime::nccl {

namespace {

constexpr size_t kSteps = 64;  ///< that are watched at a time
constexpr auto kWatch = std::chrono::milliseconds(50);

cuda::CudaEvent make_event() {
  cuda::CudaEvent out = nullptr;
  cuda::driver().event_create(&out, cuda::kEventDisableTiming);
  return out;
}

}  // namespace

Watch::Watch(const cuda::Device& device, double seconds, std::function<void(const std::string&)> on_late,
             std::function<std::string()> fault)
    : device_(device), seconds_(seconds), on_late_(std::move(on_late)), fault_(std::move(fault)) {
  const cuda::ContextScope scope(device_);
  const cuda::RelaxedCapture relaxed;
  for (size_t k = 0; k < kSteps; ++k) free_.push_back({make_event(), make_event(), {}, {}});
  thread_ = std::thread([this] { look(); });
}

Watch::~Watch() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ends_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Watch::begin(cuda::CudaStream stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  is_watched_ = !free_.empty();
  if (!is_watched_) return;
  next_ = std::move(free_.back());
  free_.pop_back();
  cuda::driver().event_record(next_.before, stream);
}

void Watch::end(const std::string& what, cuda::CudaStream stream) {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (!is_watched_) return;
  is_watched_ = false;
  cuda::driver().event_record(next_.after, stream);
  next_.what = what;
  next_.since = {};
  open_.push_back(std::move(next_));
  if (open_.size() == 1) wake_.notify_one();
}

bool Watch::has_passed(cuda::CudaEvent event) {
  // A failure of the device is told by the next call of the program itself.
  return cuda::driver().event_query.result(event) != cuda::kCudaNotReady;
}

void Watch::look() {
  const cuda::ContextScope scope(device_);
  const cuda::RelaxedCapture relaxed;
  std::unique_lock<std::mutex> lock(mutex_);
  while (!ends_) {
    if (open_.empty()) {
      wake_.wait(lock);
      continue;
    }
    wake_.wait_for(lock, kWatch);
    std::string late;
    while (!open_.empty() && has_passed(open_.front().after)) {
      free_.push_back(std::move(open_.front()));
      open_.pop_front();
    }
    if (!open_.empty()) {
      Step& first = open_.front();
      const auto now = Clock::now();
      if (first.since == Clock::time_point() && has_passed(first.before)) first.since = now;
      const bool began = first.since != Clock::time_point();
      if (began && std::chrono::duration<double>(now - first.since).count() > seconds_) late = first.what;
    }
    if (late.empty() && fault_().empty()) continue;
    lock.unlock();
    on_late_(late);
    return;
  }
}

}  // namespace helve::runtime::nccl
