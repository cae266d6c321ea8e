// The part of one process in a step of a redistribution between processes.
// A process lists its own boxes alone. What the form of the step allows is cut into parts of equal size, so that no
// process reduces, or sends, everything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "helve/plan/collective.h"
#include "helve/plan/local_exchange.h"
#include "helve/runtime/box_moves.h"
#include "helve/runtime/process_group.h"

namespace helve {

template <class Out>
class RankPlan;

/// What one process does in a step, between memory at given addresses; to be run as often as wanted.
class RankMoves {
 public:
  RankMoves(runtime::ProcessStep step, runtime::DLDataType dtype, std::optional<runtime::ReduceOp> op)
      : step_(std::move(step)), dtype_(dtype), op_(op) {}

  /// Called on all processes. Errors as of ProcessGroup; the parts must last as long as the process then.
  void run(runtime::ProcessGroup& processes, runtime::InterruptPoll& poll);

 private:
  template <class Out>
  friend class RankPlan;

  /// Messages, and the moves before, during and after them.
  struct Round {
    Round(runtime::DLDataType dtype, std::optional<runtime::ReduceOp> op)
        : pack(dtype, {}), meanwhile(dtype, {}), finish(dtype, op) {}

    runtime::BoxMoves pack, meanwhile, finish;
    std::vector<runtime::Message> sends, receives;
  };

  Round& add_round() { return rounds_.emplace_back(dtype_, op_); }
  std::byte* room(int64_t bytes) { return memory_->emplace_back(static_cast<size_t>(bytes)).data(); }

  runtime::ProcessStep step_;
  runtime::DLDataType dtype_;
  std::optional<runtime::ReduceOp> op_;
  std::deque<Round> rounds_;
  std::shared_ptr<std::deque<std::vector<std::byte>>> memory_ = std::make_shared<std::deque<std::vector<std::byte>>>();
};

class RankExchange {
 public:
  /// `rank`: of the process that is this device, row-major in the mesh of the step.
  RankExchange(const CollectiveStep& step, int64_t rank);

  /// The moves between this device's parts, which share no memory; null where it holds nothing. UserError
  /// ReductionDType.
  RankMoves prepare(const LocalPart& source, const LocalPart& target, runtime::DLDataType dtype) const;

  /// What members compare before the step.
  runtime::ProcessStep step_on(runtime::DLDataType dtype) const;

  /// From this many bytes on, what all members of a group get is cut into parts.
  static constexpr int64_t kCutBytes = 1 << 16;

 private:
  template <class Out>
  friend class RankPlan;
  friend class CollectivePlan;
  friend class DeviceMoves;

  struct Sent {
    int64_t peer;
    std::vector<int64_t> begin;  ///< in this device's part
    std::vector<int64_t> extents;
  };
  struct Received {
    std::vector<int64_t> begin;  ///< in this device's part
    std::vector<int64_t> extents;
    std::vector<int64_t> senders;  ///< in the order of reduction
    std::vector<int64_t> own;      ///< where the box begins in this device's old part, if it is a sender
  };

  CollectiveForm form_;
  std::string what_;
  std::string described_;
  std::optional<runtime::ReduceOp> op_;
  int64_t rank_;
  int64_t root_ = -1;               ///< its rank
  std::vector<int64_t> members_;    ///< of the group, row-major over the axes of the step
  std::vector<Sent> sent_;          ///< to others, in the order of elements
  std::vector<Received> received_;
};

}  // namespace helve
