// A second copy of a statement, with definitions of its own.
// Every variable and buffer is defined once in a function, so what duplicates code renames its definitions.
#pragma once

#include <utility>
#include <vector>

#include "helve/ir/tensor/visit.h"

namespace helve {

/// What a statement defines.
struct Definitions {
  std::vector<VarRef> vars;
  std::vector<BufferRef> buffers;

  explicit Definitions(const Stmt& s);
};

/// A copy, and the variables that it defines for those of the original.
struct Renewal {
  Stmt stmt;
  std::vector<std::pair<VarRef, VarRef>> vars;  ///< (of the original, of the copy)
};

/// A copy with variables and buffers of its own, and values for others.
Renewal renew(const Stmt& s, const Substitution& values = {});

/// The statement with variables and buffers of its own.
inline Stmt renewed(const Stmt& s) { return renew(s).stmt; }

}  // namespace helve
