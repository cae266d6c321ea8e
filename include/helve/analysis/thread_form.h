// The thread form: a kernel as the program of each thread of its block.
// The GPU pipeline produces it, and users may write it; it is an ordinary program.
#pragma once

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// Is the kernel in thread form already, with T.threads loops of its own?
bool is_written_for_threads(const Kernel& kernel);

}  // namespace helve
