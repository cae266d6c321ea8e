// Copies by ldmatrix and stmatrix: between shared memory and a fragment with the layout of a matrix operand.
// The copy becomes T.ldmatrix or T.stmatrix; the fragment is divided among the threads like all others.
#include <fmt/format.h>

#include "helve/analysis/thread_form.h"
#include "helve/arith/simplify.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/matrix_move.h"
#include "helve/layout/notation.h"
#include "helve/support/diagnostic.h"
#include "schedules.h"

namespace helve {

namespace {

/// Why rows of matrices in the region are not 16 contiguous bytes at a multiple of 16; empty if they are.
std::string fault_of_rows(const Region& memory, const Facts& facts) {
  const Range& columns = memory.ranges.back();
  const bool aligned = !columns.point && residue_of(columns.begin, facts).remainder_by(kMatrixRows) == 0;
  if (aligned && keeps_runs(*memory.buffer, kMatrixRows)) return {};
  return fmt::format("rows of 8 elements of '{}' are not known to begin at multiples of 16 bytes", memory.buffer->name);
}

/// Why the copy between the two regions is not one of matrices; empty if it is.
std::string fault_of(const Region& memory, const Region& fragment, bool loads, const Facts& facts) {
  const Buffer &tile = *memory.buffer, &registers = *fragment.buffer;
  if (tile.scope != MemoryScope::Shared || registers.scope != MemoryScope::Fragment || !registers.layout) {
    return loads ? "it is not from shared memory to a fragment with a layout"
                 : "it is not from a fragment with a layout to shared memory";
  }
  if (tile.dtype != registers.dtype || tile.dtype.bits != 16) return "the elements are not of one type of 16 bits";
  const std::optional<std::vector<int64_t>> shape = constant_shape(memory.shape());
  if (!shape || shape != constant_shape(fragment.shape())) return "its extents are not constants";
  std::string reason;
  const std::optional<FragmentPart> part = fragment_part(fragment, &reason);
  if (!part) return reason;
  if (!loads && !part->layout.replica().empty()) return "several threads hold one element";
  if (!matrix_move(part->layout, *shape, &reason)) return reason;
  return fault_of_rows(memory, facts);
}

Stmt by_matrices(const TileOp& op, TileOpcode instruction, const LoweringContext& context, std::string* declined) {
  const bool loads = instruction == TileOpcode::LoadMatrix;
  const Region &memory = op.region(loads ? 0 : 1), &fragment = op.region(loads ? 1 : 0);
  *declined = fault_of(memory, fragment, loads, *context.facts);
  if (registers_of_threads_among({&fragment}, *context.kernel)) {
    *declined = fmt::format("T.threads loops access '{}', so it is registers of single threads", fragment.buffer->name);
  }
  if (!declined->empty()) return {};
  std::string reason;
  return tile_op(instruction, {op.region(0), op.region(1), fragment_part(fragment, &reason)->layout}, op.span);
}

}  // namespace

Stmt cuda::lower_ldmatrix(const TileOp& op, const LoweringContext& context, std::string* declined) {
  return by_matrices(op, TileOpcode::LoadMatrix, context, declined);
}

Stmt cuda::lower_stmatrix(const TileOp& op, const LoweringContext& context, std::string* declined) {
  return by_matrices(op, TileOpcode::StoreMatrix, context, declined);
}

Stmt cuda::keep_matrix_move(const TileOp& op, const LoweringContext& context, std::string* declined) {
  if (!matrix_operands(op).divided()) return by_matrices(op, op.op, context, declined);
  if (is_written_for_threads(*context.kernel)) {
    *declined = fault_of_rows(*matrix_operands(op).memory, *context.facts);
    return declined->empty() ? Stmt(make_ref<TileOp>(op)) : Stmt();
  }
  *declined = "the kernel is not written for its threads; a T.copy between shared memory and a fragment with a layout "
              "is by matrices where it can be";
  return {};
}

}  // namespace helve
