// The shared memory of a block, in which buffers have places.
// Buffers whose places meet are one memory to a checked run: an element is undefined once its bytes were written as
// those of another buffer, and what two buffers do to one byte can race.
#pragma once

#include <memory>
#include <vector>

#include "helve/ir/tensor/stmt.h"
#include "scope.h"

namespace helve::interp {

/// The addresses that a layout gives to the elements of shared memory, in row-major order of these; null where they are
/// numbered so.
std::shared_ptr<const std::vector<int64_t>> addresses_of(const Buffer& buffer);

/// The buffers with an offset of a kernel, in groups of those that overlap.
class BlockMemory {
 public:
  BlockMemory() = default;
  /// `scope` has slots for the buffers of `body`.
  BlockMemory(const Stmt& body, const Scope& scope);

  /// A block begins, in a checked run: nothing has been accessed.
  void begin(Frame& frame) const;

 private:
  struct Member {
    BufferRef buffer;
    size_t slot = 0;
    int64_t begin = 0, end = 0;  ///< bytes
    int64_t cells = 1;  ///< of an element
    std::shared_ptr<const std::vector<int64_t>> addresses;  ///< of the elements in row-major order, in elements
  };
  struct Group {
    std::vector<Member> members;
    int64_t begin = 0;
    int64_t end = 0;
    int64_t unit = 0;  ///< bytes of a cell: all elements are whole numbers of them
  };
  std::vector<Group> groups_;
};

}  // namespace helve::interp
