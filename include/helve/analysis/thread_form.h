// The thread form: a kernel as the program of each thread of its block.
// The GPU pipeline produces it, and users may write it; it is an ordinary program.
#pragma once

#include <initializer_list>
#include <unordered_set>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// Is the kernel in thread form already, with T.threads loops of its own?
bool is_written_for_threads(const Kernel& kernel);

/// The memory of single threads, as the program says: fragments and local memory that T.threads loops access, and
/// operands without a layout of instructions beside them. The first dimension of such a fragment is the thread. The
/// block may have others, which are divided as in any kernel.
std::unordered_set<const Buffer*> registers_of_threads(const Kernel& kernel);

/// The first of the regions' buffers that is one of them; else null.
const Buffer* registers_of_threads_among(std::initializer_list<const Region*> regions, const Kernel& kernel);

}  // namespace helve
