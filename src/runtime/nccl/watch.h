// A look at what NCCL does on the GPU, from time to time.
// A process that waits for its GPU cannot be told of another one that is gone: the wait is in the driver. So a thread
// sees whether steps end.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "helve/runtime/cuda/driver.h"

namespace helve::runtime::nccl {

class Watch {
 public:
  /// `on_late` gets what did not end within so many seconds, on the thread of the watch; `fault` says what NCCL has
  /// found wrong by itself, or nothing.
  Watch(const cuda::Device& device, double seconds, std::function<void(const std::string&)> on_late,
        std::function<std::string()> fault);
  ~Watch();

  /// A step begins and ends on the stream. Steps beyond a number that have not ended are not watched: those before
  /// them are.
  void begin(cuda::CudaStream stream);
  void end(const std::string& what, cuda::CudaStream stream);

 private:
  using Clock = std::chrono::steady_clock;

  struct Step {
    cuda::CudaEvent before = nullptr, after = nullptr;
    std::string what;
    Clock::time_point since = {};  ///< when it was seen to have begun
  };

  void look();
  /// Has all of the stream before the event ended?
  static bool has_passed(cuda::CudaEvent event);

  const cuda::Device& device_;
  const double seconds_;
  const std::function<void(const std::string&)> on_late_;
  const std::function<std::string()> fault_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<Step> free_;
  std::deque<Step> open_;
  Step next_;
  bool is_watched_ = false;  ///< the step that began
  bool ends_ = false;
  std::thread thread_;
};

}  // namespace helve::runtime::nccl
