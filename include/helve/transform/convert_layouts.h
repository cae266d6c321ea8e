// The layouts of a kernel's buffers, with conversions where a statement needs a fragment in another layout than the
// program gives it.
#pragma once

#include "helve/threads/layout_inference.h"

namespace helve {

/// The body of a kernel without layout conflicts, and its layouts.
struct BlockDivision {
  Stmt body;
  BlockLayouts layouts;
};

/// The kernel's own body if there is no conflict. Else each conflicting statement works on a copy of the fragment in
/// shared memory, which is filled before it and read back after it; under `strict` it is refused (LayoutConversion).
/// LayoutOutOfReach if a copy does not help.
BlockDivision convert_layouts(const Kernel& kernel, const std::vector<MayAlias>& may_alias, const Facts& facts,
                              const Machine& machine, bool strict);

}  // namespace helve
