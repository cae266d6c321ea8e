// The operands of a value that is computed at another place of the program.
// What changes there is judged by the values that reads see.
#pragma once

#include <vector>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// The buffers that the store reads and something in `around` writes.
std::vector<BufferRef> changing_operands(const Stmt& store, const Stmt& around);

}  // namespace helve
