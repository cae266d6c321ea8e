// Instructions of a block's threads.
// They are kept; their fragments, which have layouts, get dimensions of threads and registers.
#include "helve/ir/tensor/matrix_move.h"
#include "helve/support/diagnostic.h"
#include "thread_operations.h"

namespace helve {

namespace {

/// The registers that hold the part of a fragment.
Region registers_of(const Region& fragment, const BufferRef& divided) {
  Region out = whole_region(divided);
  if (fragment.whole()) return out;
  std::string reason;
  const std::optional<FragmentPart> part = fragment_part(fragment, &reason);
  HELVE_CHECK(part, reason);
  out.ranges[1] = {int_imm(part->first_register), int_imm(part->layout.span(axes::reg())), false};
  return out;
}

}  // namespace

OperationDemand threads::demand_instruction(const TileOp& op) {
  OperationDemand out;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (!op.is_region(i) || op.region(i).buffer->scope == MemoryScope::Fragment) continue;
    out.memory.emplace_back(&op.region(i),
                            op.in_async_proxy(i) ? "tensor cores read it" : "matrices move between it and a fragment");
  }
  return out;
}

Stmt threads::divide_instruction(const TileOp& op, const DividedKernel& kernel, const Facts&) {
  std::vector<TileOperand> operands = op.operands;
  for (TileOperand& operand : operands) {
    Region* region = std::get_if<Region>(&operand);
    if (!region) continue;
    const auto place = kernel.buffers.find(region->buffer.get());
    const bool kept = place == kernel.buffers.end();  // memory of a kernel in thread form
    const BufferRef divided = kept ? region->buffer : place->second.buffer;
    if (region->buffer->scope == MemoryScope::Fragment) *region = registers_of(*region, divided);
    region->buffer = divided;
    for (Range& range : region->ranges) {
      range.begin = kernel.place(range.begin);
      range.extent = kernel.place(range.extent);
    }
  }
  return tile_op(op.op, std::move(operands), op.span);
}

}  // namespace helve
