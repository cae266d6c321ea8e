// The thread form: a kernel that says what each thread of its block does.
// The GPU pipeline makes it, and a program may be written in it; either is a program like any other.
#pragma once

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// Is the kernel the program of its threads already, with T.threads loops of its own?
bool is_written_for_threads(const Kernel& kernel);

}  // namespace helve
