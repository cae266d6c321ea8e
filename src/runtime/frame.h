// The state of one call of a plan.
// Frames are reused, so that a call in steady state allocates nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <utility>
#include <vector>

#include "helve/runtime/plan.h"

namespace helve::runtime {

/// Memory with an alignment of its own.
class AlignedBlock {
 public:
  AlignedBlock() = default;
  AlignedBlock(AlignedBlock&& o) noexcept
      : data_(std::exchange(o.data_, nullptr)), bytes_(std::exchange(o.bytes_, 0)), alignment_(o.alignment_) {}
  AlignedBlock& operator=(AlignedBlock&&) = delete;
  ~AlignedBlock() { release(); }

  /// At least `bytes` bytes; contents are lost if it grows. False if there is not enough memory.
  bool reserve(int64_t bytes, int64_t alignment) {
    if (data_ != nullptr && bytes <= bytes_ && alignment <= alignment_) return true;
    release();
    data_ = static_cast<std::byte*>(
        ::operator new(static_cast<size_t>(bytes), std::align_val_t(static_cast<size_t>(alignment)), std::nothrow));
    if (data_ == nullptr) return false;
    bytes_ = bytes;
    alignment_ = alignment;
    return true;
  }
  std::byte* data() const { return data_; }

 private:
  void release() {
    if (data_ != nullptr) ::operator delete(data_, std::align_val_t(static_cast<size_t>(alignment_)));
    data_ = nullptr;
    bytes_ = 0;
  }

  std::byte* data_ = nullptr;
  int64_t bytes_ = 0;
  int64_t alignment_ = 1;
};

/// Blocks [begin, end).
struct BlockRange {
  int64_t begin;
  int64_t end;
};

/// The state of a buffer in this call.
struct BufferState {
  std::byte* base = nullptr;
  int64_t stride = 0;  ///< bytes between the cores' instances; 0 if shared
  int64_t low = 0;     ///< the bytes of one instance are base + [low, high)
  int64_t high = 0;
  bool ready = false;  ///< a parameter, or allocated in this call
};

struct Frame {
  explicit Frame(const Plan& plan)
      : slots(plan.slots.size()),
        setters(plan.slots.size()),
        buffers(plan.params.size() + plan.buffers.size()),
        blocks(plan.buffers.size()) {}

  bool* may_have_written = nullptr;  ///< of the call, may be null
  std::vector<int64_t> slots;
  std::vector<int32_t> setters;  ///< during binding: 0 unset, p + 1 parameter p, -(s + 1) scalar s
  std::vector<BufferState> buffers;
  std::vector<AlignedBlock> blocks;  ///< memory of the plan's buffers
  std::vector<void*> pointers;       ///< a launch's arguments
  std::vector<int64_t> scalars;
  std::vector<int64_t> extents, src_strides, dst_strides, sources;  ///< a collective's box
  std::vector<int64_t> cores;                              ///< that run the step, ascending
  std::vector<BlockRange> ranges;                          ///< a launch's blocks
  std::vector<const std::byte*> places;                    ///< the addresses that a Read reads, one per core
  std::vector<std::byte> fetched;                          ///< the values there
  std::vector<std::pair<int64_t, int64_t>> known;          ///< of a control value: slots and values, core by core
  std::vector<int64_t> found;                              ///< a control value on each core
  int64_t core_blocks = 1;  ///< blocks of each core in the launch
};

}  // namespace helve::runtime
