// The alignment that a kernel's accesses demand of the bases of its buffers.
// Vector accesses, asynchronous copies and TMA say in the program how many bytes they move at once.
#pragma once

#include <vector>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// Bytes, of which the base of each of the buffers must be a multiple; at least those of an element.
std::vector<int64_t> base_alignments(const Stmt& body, const std::vector<BufferRef>& buffers);

}  // namespace helve
