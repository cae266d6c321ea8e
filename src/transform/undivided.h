// What cannot be divided among threads in a kernel that has T.threads loops.
// Such a kernel says itself which registers a thread has. Work of the block beside these loops is divided where it is
// on memory, or on fragments that only the block accesses.
#pragma once

#include <unordered_set>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// Throws NoSchedule, at `span`, if the statement contains a reduction or a loop over elements that accesses one of the
/// `registers` of threads (registers_of_threads), outside of T.threads loops; `operation` is what the user wrote, null
/// for the loop itself. Of what the user wrote, local memory outside of these loops that they access is refused too,
/// and shared memory inside of them.
void refuse_undivided(const Stmt& s, const TileOp* operation, const Span& span,
                      const std::unordered_set<const Buffer*>& registers);

}  // namespace helve
