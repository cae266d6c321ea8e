// A copy between two regions of kernel memory, as passes insert it.
// The operation wants a pad of the destination's dtype.
#include "copy_region.h"

namespace helve {

Stmt copy_region(Region from, Region to, Span span) {
  const DType dtype = to.buffer->dtype;
  const Operand zero = dtype.is_bool() ? Operand(false) : dtype.is_float() ? Operand(0.0) : Operand(int64_t{0});
  return tile_op(TileOpcode::Copy, {std::move(from), std::move(to), constant_of(zero, dtype)}, span);
}

}  // namespace helve
