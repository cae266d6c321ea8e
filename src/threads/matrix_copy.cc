// Copies by matrices as the program of a block's threads.
// A T.copy that its schedule left as it is, because a fragment of it has the layout of a matrix operand, becomes
// T.ldmatrix or T.stmatrix.
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/layout/notation.h"
#include "thread_operations.h"

namespace helve {

bool threads::is_matrix_copy(const TileOp& op) {
  if (op.op != TileOpcode::Copy) return false;
  return op.region(0).buffer->scope == MemoryScope::Fragment || op.region(1).buffer->scope == MemoryScope::Fragment;
}

OperationDemand threads::demand_matrix_copy(const TileOp& op) {
  OperationDemand out;
  for (size_t i : {0, 1}) {
    const Region& region = op.region(i);
    if (region.buffer->scope != MemoryScope::Fragment) {
      out.memory.emplace_back(&region, "matrices move between it and a fragment");
    }
  }
  return out;
}

Stmt threads::divide_matrix_copy(const TileOp& op, const DividedKernel& kernel, const Facts&) {
  const bool loads = op.region(1).buffer->scope == MemoryScope::Fragment;
  const Buffer& fragment = *op.region(loads ? 1 : 0).buffer;
  Region memory = op.region(loads ? 0 : 1);
  memory.buffer = kernel.buffers.at(memory.buffer.get()).buffer;
  for (Range& range : memory.ranges) {
    range.begin = kernel.place(range.begin);
    range.extent = kernel.place(range.extent);
  }
  const Region registers = whole_region(kernel.buffers.at(&fragment).buffer);
  const TileOpcode code = loads ? TileOpcode::LoadMatrix : TileOpcode::StoreMatrix;
  return tile_op(code, {loads ? memory : registers, loads ? registers : memory, to_string(thread_layout_of(fragment))},
                 op.span);
}

}  // namespace helve
