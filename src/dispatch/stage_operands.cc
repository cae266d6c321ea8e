// Copies before operations on parameters that may share memory.
// A copy is private to the operation, so schedules may assume that different buffers are different memory.
#include "stage_operands.h"

#include <algorithm>

namespace helve {

namespace {

/// May the operation write elements of region operand `i` under another name?
bool is_shared(const TileOp& op, size_t i, const Function& f) {
  const std::vector<TileParam>& params = op.row().params;
  if (!op.is_region(i) || params[i].writes()) return false;
  const Buffer* read = op.region(i).buffer.get();
  for (size_t k = 0; k < params.size(); ++k) {
    if (!params[k].writes()) continue;
    const Buffer* written = op.region(k).buffer.get();
    if (read != written && may_overlap(f.may_alias, read, written)) return true;
  }
  return false;
}

}  // namespace

std::vector<Stmt> stage_operands(const TileOp& op, const Function& f, std::vector<Note>* reasons) {
  const bool is_copy = op.row().rule == TileRule::Copy || op.row().rule == TileRule::MeshTensorCopy;
  Ref<TileOp> inner = make_ref<TileOp>(op);
  std::vector<Stmt> before, after;
  for (size_t i = 0; i < op.operands.size(); ++i) {
    if (!is_shared(op, i, f)) continue;
    // A tile of a core's block is read by an operation of its own: there the result is staged.
    const bool placed = op.row().rule == TileRule::MeshTensorCopy && f.mesh_tensor(op.region(i).buffer.get());
    const Region& staged = op.region(placed ? i + 1 : i);
    if (!constant_shape(staged.shape())) {
      reasons->push_back(
          {op.place(i), "what may share memory with the result is copied first, which needs a constant shape"});
      return {};
    }
    // A copy converts and pads when it reads.
    const DType dtype = is_copy ? op.region(1).buffer->dtype : staged.buffer->dtype;
    const BufferRef between = make_buffer("between", dtype, MemoryScope::Local, staged.shape());
    const Region whole = whole_region(between);
    before.push_back(alloc(between));
    if (placed) {
      inner->operands[i + 1] = whole;
      after.push_back(tile_op(TileOpcode::Copy, {whole, staged}, op.span));
    } else {
      std::vector<TileOperand> operands = {staged, whole};
      if (op.row().rule == TileRule::Copy) operands.push_back(op.expr(op.row().index_of("pad")));
      before.push_back(tile_op(TileOpcode::Copy, std::move(operands), op.span));
      inner->operands[i] = whole;
    }
  }
  if (before.empty()) return {};
  before.push_back(Stmt(inner));
  before.insert(before.end(), after.begin(), after.end());
  return before;
}

}  // namespace helve
