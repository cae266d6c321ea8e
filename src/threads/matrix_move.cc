// Copies by matrices as instructions of a block's threads.
// T.ldmatrix and T.stmatrix stay what they are; their fragment becomes one of threads and registers.
#include "helve/ir/tensor/matrix_move.h"
#include "thread_operations.h"

namespace helve {

OperationDemand threads::demand_matrix_move(const TileOp& op) {
  OperationDemand out;
  out.memory.emplace_back(matrix_operands(op).memory, "matrices move between it and a fragment");
  return out;
}

Stmt threads::divide_matrix_move(const TileOp& op, const DividedKernel& kernel, const Facts&) {
  const MatrixOperands operands = matrix_operands(op);
  Region memory = *operands.memory;
  memory.buffer = kernel.buffers.at(memory.buffer.get()).buffer;
  for (Range& range : memory.ranges) {
    range.begin = kernel.place(range.begin);
    range.extent = kernel.place(range.extent);
  }
  const Region registers = whole_region(kernel.buffers.at(operands.fragment->buffer.get()).buffer);
  const bool loads = op.op == TileOpcode::LoadMatrix;
  return tile_op(op.op, {loads ? memory : registers, loads ? registers : memory, operands.layout}, op.span);
}

}  // namespace helve
