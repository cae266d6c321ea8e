// A copy between two regions of kernel memory, as inserted by passes.
// It does not reach past an end, so the pad is the operation's default.
#include "copy_region.h"

namespace helve {

Stmt copy_region(Region from, Region to, Span span) {
  return tile_op(TileOpcode::Copy, {std::move(from), std::move(to)}, span);
}

}  // namespace helve
