// Collectives between the cores of a mesh, behind one interface.
// A plan describes transfers; the communicator knows whether the cores are parts of this process, processes or GPUs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "helve/runtime/interrupt.h"
#include "helve/runtime/plan.h"

namespace helve::runtime {

/// A buffer of every core: core c's instance begins at base + c * stride bytes; a stride of 0 means shared.
struct CoreBuffer {
  std::byte* base = nullptr;
  int64_t stride = 0;
};

/// A collective with every scalar evaluated; the fields have the meaning of those of Collective in plan.h. Offsets and
/// strides are in elements of `dtype`. The spans are borrowed for the call.
struct CollectiveRequest {
  std::span<const int64_t> mesh;
  uint64_t axes = 0;
  std::span<const int64_t> cores;  ///< that take part, ascending, in whole groups; empty: all
  DLDataType dtype{kDLFloat, 32, 1};
  ReduceOp op = ReduceOp::Sum;
  CoreBuffer src;
  CoreBuffer dst;
  int64_t src_offset = 0;
  int64_t dst_offset = 0;
  std::span<const int64_t> extents;
  std::span<const int64_t> src_strides;
  std::span<const int64_t> dst_strides;
  int64_t member_stride_src = 0;
  int64_t member_stride_dst = 0;
  int64_t root = 0;
  std::span<const int64_t> sources;  ///< Permute: the source of each member of a group
  InterruptPoll* poll = nullptr;
};

class Communicator {
 public:
  virtual ~Communicator() = default;

  /// Returns when the destination is readable and the source reusable. UserError ReductionDType for a reduction of a
  /// dtype that has none. Concurrent calls are allowed.
  virtual void run(CollectiveKind kind, const CollectiveRequest& request) = 0;

  /// Around a call of a plan, whose collectives are those of `run` in between: it begins, and ends well or by an error.
  virtual void begin_call() {}
  virtual void end_call(bool) {}

  /// The cores that are parts of this process, ascending; empty: all of them.
  virtual std::span<const int64_t> cores() const { return {}; }
};

/// A call of a plan, while it lasts.
class CallOfPlan {
 public:
  explicit CallOfPlan(Communicator& communicator) : communicator_(communicator) { communicator_.begin_call(); }
  CallOfPlan(const CallOfPlan&) = delete;
  CallOfPlan& operator=(const CallOfPlan&) = delete;
  ~CallOfPlan() { communicator_.end_call(is_well_); }
  void succeed() { is_well_ = true; }

 private:
  Communicator& communicator_;
  bool is_well_ = false;
};

/// All cores are buffers of this process: a collective is copies and sums in memory, on the thread pool if they are
/// large.
class HostCommunicator final : public Communicator {
 public:
  void run(CollectiveKind kind, const CollectiveRequest& request) override;
};

/// Number of members of each group over `axes`.
int64_t group_size(std::span<const int64_t> mesh, uint64_t axes);

/// Does the core take part?
bool takes_part(const CollectiveRequest& request, int64_t core);

}  // namespace helve::runtime
