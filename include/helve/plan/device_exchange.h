// The part of one process in a step of a redistribution between GPUs, one of each process.
// What is one collective of NCCL is called as that; everything else is sends and receives, with kernels that pack,
// unpack and reduce.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "helve/plan/rank_exchange.h"
#include "helve/runtime/cuda/device_boxes.h"
#include "helve/runtime/nccl/nccl_world.h"

namespace helve {

/// What one process does in a step, between memory of its GPU at given addresses; to be run as often as wanted.
///
/// NCCL reduces integers, and sums and products of float32 and float64, the latter in an order of its own. Everything
/// else is reduced here, in the order of devices, bit for bit as on CPUs.
class DeviceMoves {
 public:
  /// Memory of the GPU for what is packed, of so many bytes; it lasts as long as this object.
  using Allocate = std::function<std::byte*(int64_t bytes)>;

  /// The moves between this device's parts, which share no memory; null where it holds nothing. `site_packages`: where
  /// pip's NVRTC may be. UserError ReductionDType.
  DeviceMoves(const RankExchange& exchange, const LocalPart& source, const LocalPart& target, runtime::DLDataType dtype,
              std::vector<std::string> site_packages, const Allocate& allocate);
  DeviceMoves(const DeviceMoves&) = delete;
  DeviceMoves& operator=(const DeviceMoves&) = delete;

  /// Called on all processes; puts the moves on the stream. The first call connects processes, so that no graph can
  /// record it. `compares`: whether processes compare the step. Errors as of NcclWorld, UserError ForbiddenInCapture.
  void run(runtime::nccl::NcclWorld& world, runtime::cuda::CudaStream stream, bool compares,
           runtime::InterruptPoll& poll);

 private:
  template <class Out>
  friend class RankPlan;
  friend class CollectivePlan;

  /// Messages, and the moves before and after them.
  struct Round {
    Round(runtime::DLDataType dtype, std::optional<runtime::ReduceOp> op)
        : pack(dtype, {}), meanwhile(dtype, {}), finish(dtype, op) {}

    runtime::cuda::DeviceBoxes pack, meanwhile, finish;
    std::vector<runtime::Message> sends, receives;
  };

  /// A collective of NCCL, in place of the messages of the only round.
  struct Named {
    const std::byte* sent;
    std::byte* received;
    int64_t count;  ///< elements of a block
    int type, op;  ///< of NCCL
  };

  Round& add_round() { return rounds_.emplace_back(dtype_, op_); }
  std::byte* room(int64_t bytes) { return (*allocate_)(bytes); }

  void load(const runtime::cuda::Device& device);
  void put(const runtime::nccl::NcclWorld& world, runtime::nccl::NcclComm comm, runtime::cuda::CudaStream stream) const;
  void put_named(const runtime::nccl::NcclWorld& world, runtime::nccl::NcclComm comm,
                 runtime::cuda::CudaStream stream) const;
  int place_of(int64_t rank) const;

  runtime::ProcessStep step_;
  runtime::DLDataType dtype_;
  std::optional<runtime::ReduceOp> op_;
  CollectiveForm form_;
  std::vector<int64_t> members_;
  int64_t root_;
  std::vector<std::string> site_packages_;
  const Allocate* allocate_;  ///< until the moves are made
  std::deque<Round> rounds_;
  std::optional<Named> named_;
  bool is_first_ = true;
};

}  // namespace helve
