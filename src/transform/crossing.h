// The buffers that carry a value from one part of a kernel to another.
// When a kernel is split, only these need memory outside of it; all others are private to a part.
#pragma once

#include <unordered_set>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

using BufferSet = std::unordered_set<const Buffer*>;

/// The accesses of a sequence of statements to buffers that outlive it.
struct Touch {
  BufferSet exposed;  ///< may be read before all of it has been written
  BufferSet written;  ///< may be written, in part or whole
  BufferSet whole;    ///< certainly written in full; other written buffers may keep earlier contents
  BufferSet used;     ///< occurs: read, written, as mbarriers, or as the buffer whose tiles a loop counts
};

Touch touch_of(const std::vector<Stmt>& stmts);

}  // namespace helve
