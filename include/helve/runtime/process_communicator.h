// Collectives between cores of which each is a process.
// A process makes the moves of a collective that begin or end in its own memory, by messages.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "helve/runtime/communicator.h"
#include "helve/runtime/process_group.h"

namespace helve::runtime {

/// Core c is process c. Members of a group compare a collective before they do it: which plan it is of, which call of
/// that, and which collective of the call over these axes.
class ProcessCommunicator final : public Communicator {
 public:
  /// `plan`: what all processes must mean by it.
  ProcessCommunicator(std::shared_ptr<ProcessGroup> processes, const std::string& plan);
  ~ProcessCommunicator() override;

  /// Errors as of ProcessGroup as well.
  void run(CollectiveKind kind, const CollectiveRequest& request) override;
  std::span<const int64_t> cores() const override { return {&own_, 1}; }
  /// A call takes the group for itself. An error before any collective leaves no trace, so that the call can be made
  /// again; a later one breaks the group.
  void begin_call() override;
  void end_call(bool is_well) override;

 private:
  struct Form;
  const Form& form_of(CollectiveKind kind, const CollectiveRequest& request);

  std::shared_ptr<ProcessGroup> processes_;
  int64_t own_;
  uint64_t plan_;                       ///< a hash
  uint64_t calls_ = 0;                  ///< that ended well
  std::map<uint64_t, uint64_t> count_;  ///< collectives of this call over these axes
  std::map<std::vector<int64_t>, std::unique_ptr<Form>> forms_;
};

}  // namespace helve::runtime
