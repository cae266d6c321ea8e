// Copies by matrices: between block memory and a fragment that the program gave the layout of a matrix operand.
// Such a copy stays what it is until the threads are known, and becomes T.ldmatrix or T.stmatrix there.
#include <fmt/format.h>

#include "helve/arith/simplify.h"
#include "helve/dispatch/divide.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/matrix_move.h"
#include "helve/layout/notation.h"
#include "helve/support/diagnostic.h"
#include "schedules.h"

namespace helve {

namespace {

constexpr int kStoresMatrices = 90;  // of architectures

/// Do rows of a matrix lie together, at multiples of 16 bytes, wherever a region of 8 x 8 matrices begins at one?
bool keeps_rows(const Buffer& memory) {
  const std::optional<std::vector<int64_t>> shape = constant_shape(memory.shape);
  if (!shape) return false;
  if (!memory.layout) return shape->back() % kMatrixRows == 0;
  const Layout& layout = *memory.layout;
  if (!layout.swizzle().identity() && (int64_t{1} << layout.swizzle().base) < kMatrixRows) return false;
  const GroupedLayout grouped = layout.group(*shape);
  for (size_t d = 0; d < shape->size(); ++d) {
    const Iters iters = grouped.block(d);
    for (size_t k = 0; k < iters.size(); ++k) {
      const bool row = d + 1 == shape->size() && k + 1 == iters.size();
      if (row ? iters[k].stride != 1 || iters[k].extent % kMatrixRows != 0 : iters[k].stride % kMatrixRows != 0) {
        return false;
      }
    }
  }
  return !grouped.block(shape->size() - 1).empty();
}

/// Why the copy between the two regions is none of matrices; empty where it is.
std::string fault_of(const Region& memory, const Region& fragment, bool loads, const LoweringContext& context) {
  const Buffer &tile = *memory.buffer, &registers = *fragment.buffer;
  if (tile.scope != MemoryScope::Shared || registers.scope != MemoryScope::Fragment || !registers.layout) {
    return "it is not between block memory and a fragment with a layout";
  }
  if (tile.dtype != registers.dtype || tile.dtype.bits != 16) return "the elements are not of one type of 16 bits";
  if (!loads && context.cuda_arch < kStoresMatrices) return "stmatrix needs sm_90";
  const std::optional<std::vector<int64_t>> shape = constant_shape(memory.shape());
  if (!shape || !fragment.whole() || shape != constant_shape(registers.shape)) {
    return "it is not a copy of the whole fragment";
  }
  const Layout layout = thread_layout_of(registers);
  if (!loads && !layout.replica().empty()) return "several threads hold one element";
  std::string reason;
  if (!matrix_move(layout, *shape, &reason)) return reason;
  const Range& columns = memory.ranges.back();
  const bool aligned = !columns.point && residue_of(columns.begin, *context.facts).remainder_by(kMatrixRows) == 0;
  if (!aligned || !keeps_rows(tile)) {
    return fmt::format("rows of 8 elements of '{}' are not known to begin at multiples of 16 bytes", tile.name);
  }
  return {};
}

}  // namespace

Stmt cuda::lower_copy_by_matrices(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const bool loads = op.region(1).buffer->scope == MemoryScope::Fragment;
  *declined = is_written_for_threads(*context.kernel)
                  ? "the kernel is written for its threads"
                  : fault_of(op.region(loads ? 0 : 1), op.region(loads ? 1 : 0), loads, context);
  return declined->empty() ? Stmt(make_ref<TileOp>(op)) : Stmt();
}

Stmt cuda::lower_matrix_move(const TileOp& op, const LoweringContext& context, std::string* declined) {
  if (op.op == TileOpcode::StoreMatrix && context.cuda_arch < kStoresMatrices) {
    *declined = "stmatrix needs sm_90";
  } else if (!is_written_for_threads(*context.kernel)) {
    *declined = "the kernel is not written for its threads; a T.copy between block memory and a fragment with a layout "
                "is by matrices where it can be";
  }
  return declined->empty() ? Stmt(make_ref<TileOp>(op)) : Stmt();
}

Stmt divide_matrix_copy(const TileOp& op, const DividedKernel& kernel) {
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
