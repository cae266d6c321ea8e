// Collectives between cores of which each is a process.
// A process makes the moves of a collective that begin or end in its own memory, by messages.
#pragma once

#include <map>
#include <memory>
#include <mutex>

#include "helve/runtime/communicator.h"
#include "helve/runtime/process_group.h"

namespace helve::runtime {

/// Core c is process c. Members of a group compare a collective before they do it.
class ProcessCommunicator final : public Communicator {
 public:
  explicit ProcessCommunicator(std::shared_ptr<ProcessGroup> processes);

  /// Errors as of ProcessGroup as well.
  void run(CollectiveKind kind, const CollectiveRequest& request) override;
  std::span<const int64_t> cores() const override { return {&own_, 1}; }

 private:
  std::shared_ptr<ProcessGroup> processes_;
  int64_t own_;
  std::mutex mutex_;                       ///< collectives of a process are one after the other
  std::map<uint64_t, uint64_t> count_;     ///< collectives over these axes so far
};

}  // namespace helve::runtime
