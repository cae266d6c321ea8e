// A second copy of a statement, with definitions of its own.
// Every variable and buffer is defined once in a function, so passes that duplicate code rename its definitions.
#pragma once

#include <vector>

#include "helve/ir/tensor/stmt.h"

namespace helve {

/// What a statement defines.
struct Definitions {
  std::vector<VarRef> vars;
  std::vector<BufferRef> buffers;

  explicit Definitions(const Stmt& s);
};

/// The statement with variables and buffers of its own.
Stmt renewed(const Stmt& s);

}  // namespace helve
