// Which buffers of shared memory may have the same bytes.
// Two may where they are never used at once, and where a barrier that the program has stands between the uses of one
// and those of the other.
#pragma once

#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

/// The shared buffers of a kernel in thread form.
///
/// A buffer is in use where it may have been written since its allocation and may be read before it is written wholly;
/// what an asynchronous copy accesses is in use until the block has waited for all copies. What takes part in a
/// collective, which other cores read in their own time, is in use throughout the kernel.
class SharedLifetimes {
 public:
  explicit SharedLifetimes(const Kernel& kernel);

  /// The buffers that are accessed, in the order of their allocations.
  const std::vector<BufferRef>& buffers() const { return buffers_; }
  /// Must buffers `a` and `b` have different bytes?
  bool meet(size_t a, size_t b) const { return meet_[a][b]; }

 private:
  std::vector<BufferRef> buffers_;
  std::vector<std::vector<bool>> meet_;
};

}  // namespace helve
