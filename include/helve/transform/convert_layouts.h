// The layouts of a kernel's buffers, with conversions where the program placed a fragment otherwise than a statement
// needs it.
#pragma once

#include "helve/threads/layout_inference.h"

namespace helve {

/// The body of a kernel whose layouts have no conflict, and the layouts.
struct BlockDivision {
  Stmt body;
  BlockLayouts layouts;
};

/// The kernel's own body where there is no conflict. Else each statement that has one works on a copy of the fragment
/// in shared memory, which is filled before and read back after it; under `strict` it is refused (LayoutConversion).
/// LayoutOutOfReach where no copy helps.
BlockDivision convert_layouts(const Kernel& kernel, const std::vector<MayAlias>& may_alias, const Facts& facts,
                              const Machine& machine, bool strict);

}  // namespace helve
