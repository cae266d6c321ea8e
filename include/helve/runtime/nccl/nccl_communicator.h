// Collectives of a plan between the GPUs of processes.
// The counterpart of ProcessCommunicator: a process puts its side of a collective on the stream of a call, by NCCL.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "helve/runtime/cuda/device_communicator.h"
#include "helve/runtime/nccl/nccl_world.h"

namespace helve::runtime::nccl {

/// Core c is the GPU of process c. A gather, broadcast or reduction that NCCL does as helve does is one call of it, all
/// else sends and receives of one group, with kernels that pack, unpack and reduce in the order of members.
class NcclCommunicator final : public cuda::DeviceCommunicator, public std::enable_shared_from_this<NcclCommunicator> {
 public:
  /// `plan`: what all processes must mean by it. `compares`: members of a group compare a collective before they do it;
  /// where values of the device decide about collectives they always do. `site_packages`: where pip's NVRTC may be.
  NcclCommunicator(std::shared_ptr<NcclWorld> world, const std::string& plan, std::vector<std::string> site_packages,
                   bool compares);
  ~NcclCommunicator() override;

  std::span<const int64_t> cores() const override { return {&own_, 1}; }
  /// The first call makes a communicator for each set of axes of the plan, in one order on all processes: a later
  /// collective may be of some of them alone. Errors as of NcclWorld.
  void begin_call(const Plan& plan, const cuda::Device& device, bool captured, InterruptPoll& poll) override;
  /// An error before any collective leaves no trace, so that the call can be made again; a later one breaks the group.
  void end_call(bool is_well) override;
  /// UserError ReductionDType.
  int64_t room_of(CollectiveKind kind, const CollectiveRequest& request) override;
  /// Errors as of NcclWorld::call, ForbiddenInCapture for the first one of its form.
  void run(CollectiveKind kind, const CollectiveRequest& request, std::byte* room, cuda::CudaStream stream,
           bool captured) override;

 private:
  struct Group;
  struct Work;

  Group group_of(const CollectiveRequest& request) const;
  std::shared_ptr<Work> work_of(CollectiveKind kind, const CollectiveRequest& request);
  void put(const Work& work, NcclComm comm, std::byte* room, cuda::CudaStream stream) const;
  void put_named(const Work& work, NcclComm comm, std::byte* room, cuda::CudaStream stream) const;

  std::shared_ptr<NcclWorld> world_;
  int64_t own_;
  uint64_t plan_;  ///< a hash
  std::vector<std::string> site_packages_;
  bool compares_;
  std::string name_;  ///< of the plan
  bool is_first_ = true;  ///< call
  uint64_t calls_ = 0;  ///< that ended well
  InterruptPoll* poll_ = nullptr;  ///< of this call
  std::map<uint64_t, std::unique_ptr<Group>> groups_;  ///< by axes
  std::map<std::vector<int64_t>, std::shared_ptr<Work>> works_;
};

}  // namespace helve::runtime::nccl
