// Code of a thread with barriers inside, as loops over the threads without.
// A loop over threads ends for all of them before the next statement begins, so a barrier is the end of such a loop.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// Names of the statements at which threads meet, by their places; others are T.sync_threads.
using MeetingNames = std::vector<std::pair<Span, std::string>>;

/// A loop over threads whose body may contain T.sync_threads, under loops and branches that all threads take alike, as
/// statements of the block: each run of statements between two barriers is a loop over threads of its own. What a
/// thread keeps from one to another becomes its registers, F[tx, i], rounded as by a store; indices that read no memory
/// are computed again. The loop itself if it contains no barrier. OperationScope where control flow around a barrier is
/// not known to be the same for all threads.
Stmt thread_steps(const Stmt& loop, const MeetingNames& names = {});

}  // namespace helve
