// Products of fragments as instructions of a block's threads.
// T.mma stays what it is; its fragments, which have their layouts, become ones of threads and registers.
#include "thread_operations.h"

namespace helve {

OperationDemand threads::demand_matrix_product(const TileOp&) { return {}; }

Stmt threads::divide_matrix_product(const TileOp& op, const DividedKernel& kernel, const Facts&) {
  std::vector<TileOperand> operands = op.operands;
  for (TileOperand& operand : operands) {
    Region* region = std::get_if<Region>(&operand);
    if (region) *region = whole_region(kernel.buffers.at(region->buffer.get()).buffer);
  }
  return tile_op(op.op, std::move(operands), op.span);
}

}  // namespace helve
