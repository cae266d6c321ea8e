// The thread form: a kernel as the program of each thread of its block.
// The GPU pipeline produces it, and users may write it; it is an ordinary program.
#pragma once

#include <unordered_set>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// Is the kernel in thread form already, with T.threads loops of its own?
bool is_written_for_threads(const Kernel& kernel);

/// The fragments whose first dimension is the thread, as the program says: those that T.threads loops access, and
/// operands of instructions beside them. The block may have others, which are divided as in any kernel.
std::unordered_set<const Buffer*> registers_of_threads(const Kernel& kernel);

}  // namespace helve
