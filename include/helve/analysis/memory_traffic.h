// What a kernel could do for the memory system: stores that need no cache, reads that can begin early; and addresses.
// Both change no result; where they pay, passes decide from effects and shapes (stream_stores, prefetch_reads).
#pragma once

#include <unordered_set>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

/// Parameters that the kernel writes, each element at most once, and never reads, under no other name either. Where
/// such a tensor is larger than the caches, no line of it is used again before it has left them.
std::unordered_set<const Buffer*> streamed_params(const Kernel& kernel, const std::vector<MayAlias>& may_alias = {});

/// An element that is read soon: in the next iteration of a loop around `loop`, or by the next block. Its subscripts
/// may lie outside of the buffer in the last one.
struct EarlyRead {
  const For* loop;  ///< the vector loop beside whose reads it can be fetched
  BufferRef buffer;
  std::vector<Expr> indices;  ///< in the variables of the kernel; names are replaced by what they stand for
};

/// Where one iteration reads elements of a parameter more than once, the first time waits for memory and the last does
/// not: there the same elements of the next iteration can be fetched. Only what fits into a core's cache beside the
/// present ones. Where short rows are read once, rows some way ahead.
std::vector<EarlyRead> early_reads(const Kernel& kernel);

}  // namespace helve
