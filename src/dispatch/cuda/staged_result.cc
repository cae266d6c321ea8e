// Results of tensor cores that leave through shared memory.
// The parts follow from the layout of the sums: every thread has some of each, so that all warps store all of the time,
// and a row of a part is what a swizzle permutes.
#include "helve/dispatch/staged_result.h"

#include <fmt/format.h>

#include <algorithm>

#include "copy_regions.h"
#include "helve/analysis/box_copy.h"
#include "helve/analysis/copy_dimensions.h"
#include "helve/analysis/effects.h"
#include "helve/analysis/thread_form.h"
#include "helve/arith/simplify.h"
#include "helve/dispatch/group_products.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/group_product.h"
#include "helve/ir/tensor/matrix_move.h"
#include "helve/ir/tensor/shared_place.h"
#include "helve/ir/tensor/visit.h"
#include "helve/layout/warp.h"
#include "schedules.h"

namespace helve {

namespace {

constexpr int64_t kReserved = 1024;  ///< bytes of shared memory that each block takes for the system
constexpr int64_t kOtherRegisters = 32;  ///< of a thread, beside its elements
constexpr int64_t kMostBlocks = 2;  ///< of a multiprocessor whose number parts leave as it is
constexpr int64_t kFewestColumns = 16;  ///< of a part: rows of 32 bytes, which memory moves at once

/// The accesses of a tile to the tensor of a result, its copy included. Of a condition's arms only those with the copy
/// count: a tile takes one of them, and no tile touches what another one stores.
class UsesOfResult {
 public:
  UsesOfResult(const TileOp& copy, const std::vector<MayAlias>& may_alias)
      : fragment_(copy.region(0).buffer.get()), tensor_(copy.region(1).buffer.get()), may_alias_(may_alias) {}

  size_t count(const Kernel& kernel) const { return uses(kernel.body, true); }

 private:
  /// `alone`: is there no loop around but those of tiles?
  size_t uses(const Stmt& s, bool alone) const {
    if (!s) return 0;
    size_t out = 0;
    for (const RegionAccess& access : direct_accesses(s)) {
      out += may_overlap(may_alias_, access.region.buffer.get(), tensor_) ? 1 : 0;
    }
    if (const If* branch = as<If>(s); branch && alone && has_copy(s)) {
      size_t most = 0;
      for (const Stmt& arm : {branch->then_body, branch->else_body}) {
        if (has_copy(arm)) most = std::max(most, uses(arm, alone));
      }
      return out + most;
    }
    const For* loop = as<For>(s);
    const bool inside = alone && s->kind != StmtKind::While && (!loop || loop->loop == LoopKind::Persistent);
    for_each_part(s, [](const Expr&) {}, [&](const Stmt& part) { out += uses(part, inside); });
    return out;
  }

  bool is_copy(const Stmt& s) const {
    const TileOp* op = as<TileOp>(s);
    return op && op->op == TileOpcode::Copy && op->region(0).buffer.get() == fragment_ &&
           op->region(1).buffer.get() == tensor_;
  }
  bool has_copy(const Stmt& s) const {
    bool found = false;
    walk(s, [&](const Stmt& each) { found |= is_copy(each); });
    return found;
  }

  const Buffer* fragment_;
  const Buffer* tensor_;
  const std::vector<MayAlias>& may_alias_;
};

/// Why the copy is none from registers of tensor cores to a tensor of 16-bit elements; empty if it is.
std::string fault_of(const TileOp& copy, const LoweringContext& context) {
  const Region &src = copy.region(0), &dst = copy.region(1);
  if (!context.machine->group_products) return "it needs sm_90a";
  if (!context.kernel || !multiplies_by_groups(context.kernel->body, context)) {
    return "the kernel has no product of warpgroups";
  }
  if (is_written_for_threads(*context.kernel)) return "the kernel is written for its threads";
  if (context.function->mesh) return "the kernel is on a mesh";
  if (src.buffer->scope != MemoryScope::Fragment || !src.buffer->layout || !src.whole()) {
    return "it is not from a whole fragment with a layout";
  }
  if (dst.buffer->scope != MemoryScope::Param) return "it is not to a tensor of the call";
  if (dst.buffer->dtype.bits != 16) return "the tensor's elements have not 16 bits";
  if (UsesOfResult(copy, context.function->may_alias).count(*context.kernel) != 1) {
    return fmt::format("other statements of the kernel access '{}'", dst.buffer->name);
  }
  return "";
}

/// Bytes of shared memory that parts may take: what the block has left, and so little that as many blocks as before
/// fit a multiprocessor.
int64_t room_of(const Kernel& kernel, const Machine& machine, const Buffer& fragment, int64_t taken) {
  int64_t allocated = taken;
  walk(kernel.body, [&](const Stmt& s) {
    const Alloc* n = as<Alloc>(s);
    if (!n || n->buffer->scope != MemoryScope::Shared) return;
    const int64_t unit = shared_alignment(*n->buffer);
    allocated += (shared_size(*n->buffer) + unit - 1) / unit * unit;
  });
  const int64_t registers = thread_layout_of(fragment).span(axes::reg()) + kOtherRegisters;
  const int64_t by_memory = machine.shared_bytes / (allocated + kReserved);
  const int64_t by_registers = machine.registers / (registers * kernel.threads);
  const int64_t blocks = std::clamp(std::min(by_memory, by_registers), int64_t{1}, kMostBlocks);
  return std::min(machine.block_shared_bytes, machine.shared_bytes / blocks - kReserved) - allocated;
}

/// The parts of `rows` x `columns`; nothing if these are no such parts.
std::optional<std::vector<StagedResult::Part>> parts_of(const BufferRef& fragment, int64_t rows, int64_t columns) {
  const std::vector<int64_t> shape = *constant_shape(fragment->shape);
  std::vector<StagedResult::Part> out;
  for (int64_t row = 0; row < shape[0]; row += rows) {
    for (int64_t column = 0; column < shape[1]; column += columns) {
      const Region region{fragment, {{int_imm(row), int_imm(rows)}, {int_imm(column), int_imm(columns)}}};
      std::string reason;
      const std::optional<FragmentPart> part = fragment_part(region, &reason);
      if (!part || !part->layout.replica().empty() || !matrix_move(part->layout, {rows, columns}, &reason)) return {};
      out.push_back({row, column, part->layout});
    }
  }
  return out;
}

/// Shared memory for a part: slabs as tensor cores read them are those that maps write.
BufferRef slot_of(DType dtype, int64_t rows, int64_t columns, const Span& span) {
  const BufferRef plain = make_buffer("staged", dtype, MemoryScope::Shared, {int_imm(rows), int_imm(columns)});
  return with_layout(plain, factor_layout(FactorTile{rows, columns, true, dtype.bits}), span);
}

/// Shapes of parts, in the order in which they are tried: rows as wide as the widest swizzle first, then many rows. All
/// of a fragment whose columns belong to different warps is the last.
std::vector<std::pair<int64_t, int64_t>> shapes_of(const std::vector<int64_t>& shape) {
  std::vector<std::pair<int64_t, int64_t>> out;
  if (shape[1] % kFewestColumns != 0) return out;
  for (int64_t columns = 64; columns >= kFewestColumns; columns /= 2) {
    if (shape[1] % columns != 0) continue;
    for (int64_t rows = shape[0]; rows >= kGroupRows; rows /= 2) {
      out.emplace_back(rows, columns);
      if (rows % 2 != 0) break;
    }
  }
  out.emplace_back(shape[0], shape[1]);
  return out;
}

/// The warpgroups, if the part has as many equal runs of rows and each warpgroup stores to one, in their order; else 1.
int64_t groups_with_own_rows(const Layout& layout, const std::vector<int64_t>& shape) {
  const int64_t threads = layout.span(axes::tx()), groups = threads / kWarpgroup;
  std::string reason;
  const std::optional<MatrixMove> move = matrix_move(layout, shape, &reason);
  if (threads % kWarpgroup != 0 || shape[0] % groups != 0 || !move) return 1;
  const int64_t rows = shape[0] / groups;
  int64_t last = kMatrixRows - 1;  // row of a warp, from its first one on
  for (const MatrixMove::Digit& digit : move->registers) {
    if (digit.dim == 0) last += digit.step * (digit.extent - 1);
  }
  for (int64_t thread = 0; thread < threads; thread += kWarp) {
    int64_t first = 0;
    for (const MatrixMove::Digit& digit : move->warps) {
      if (digit.dim == 0) first += thread / digit.divisor % digit.extent * digit.step;
    }
    const int64_t group = thread / kWarpgroup;
    if (first < group * rows || first + last >= (group + 1) * rows) return 1;
  }
  return groups;
}

}  // namespace

Region StagedResult::of_fragment(const BufferRef& fragment, const Part& part) const {
  return {fragment, {{int_imm(part.row), slot->shape[0]}, {int_imm(part.column), slot->shape[1]}}};
}

Region StagedResult::of_tensor(const Part& part, const Facts& facts) const {
  Region out = tensor;
  const std::vector<size_t> open = open_dimensions(tensor);
  const int64_t begins[] = {part.row, part.column};
  for (size_t k = 0; k < 2; ++k) {
    Range& range = out.ranges[open[k]];
    range = {simplify(range.begin + int_imm(begins[k]), facts), slot->shape[k], false};
  }
  return out;
}

std::vector<StagedResult::Box> StagedResult::boxes_of(const Part& part, const BufferRef& memory,
                                                      const Facts& facts) const {
  const Region all = of_tensor(part, facts);
  const int64_t groups = groups_with_own_rows(part.layout, *constant_shape(slot->shape));
  if (groups == 1) return {{whole_region(memory), all}};
  const size_t rows_of_tensor = open_dimensions(tensor)[0];
  const int64_t rows = *int_value(slot->shape[0]) / groups;
  std::vector<Box> out;
  for (int64_t group = 0; group < groups; ++group) {
    Box box{whole_region(memory), all};
    box.memory.ranges[0] = {int_imm(group * rows), int_imm(rows), false};
    Range& range = box.tensor.ranges[rows_of_tensor];
    range = {simplify(range.begin + int_imm(group * rows), facts), int_imm(rows), false};
    out.push_back(std::move(box));
  }
  return out;
}

std::optional<StagedResult> staged_result(const TileOp& copy, const LoweringContext& context, int64_t taken,
                                          std::string* reason) {
  *reason = fault_of(copy, context);
  if (!reason->empty()) return std::nullopt;
  const std::optional<CopyRegions> regions = copy_regions(copy, context, reason);
  if (!regions) return std::nullopt;
  const BufferRef& fragment = copy.region(0).buffer;
  const std::optional<std::vector<int64_t>> shape = constant_shape(fragment->shape);
  if (shape->size() != 2 || constant_shape(regions->dst.shape()) != shape) {
    *reason = "it is not a tile of two dimensions";
    return std::nullopt;
  }
  const int64_t room = room_of(*context.kernel, *context.machine, *fragment, taken);
  *reason = fmt::format("its columns are no multiple of {}", kFewestColumns);
  std::string no_room;
  for (const int64_t wanted : {2, 1}) {
    for (const auto& [rows, columns] : shapes_of(*shape)) {
      std::optional<std::vector<StagedResult::Part>> parts = parts_of(fragment, rows, columns);
      if (!parts) continue;
      StagedResult out{std::min(wanted, static_cast<int64_t>(parts->size())),
                       slot_of(regions->dst.buffer->dtype, rows, columns, copy.span), regions->dst, std::move(*parts)};
      const int64_t bytes = out.slots * shared_size(*out.slot);
      if (bytes > room) {
        no_room = fmt::format("a part of it takes {} bytes of shared memory, of which {} are left",
                              shared_size(*out.slot), std::max<int64_t>(room, 0));
        continue;
      }
      const bool boxes = std::all_of(out.parts.begin(), out.parts.end(), [&](const StagedResult::Part& part) {
        const std::vector<StagedResult::Box> each = out.boxes_of(part, out.slot, *context.facts);
        return std::all_of(each.begin(), each.end(), [&](const StagedResult::Box& box) {
          const Stmt store = tile_op(TileOpcode::CpAsyncBulkTensor, {box.memory, box.tensor}, copy.span);
          return is_box_copy(*as<TileOp>(store), regions->pad, *context.facts, reason);
        });
      });
      if (boxes) return out;
    }
  }
  if (!no_room.empty()) *reason = no_room;
  return std::nullopt;
}

/// What can be staged has been (transform/stage_results.cc).
Stmt cuda::lower_staged(const TileOp& op, const LoweringContext& context, std::string* declined) {
  if (staged_result(op, context, 0, declined)) *declined = "later passes need the shared memory for it";
  return {};
}

}  // namespace helve
