// The rules of instructions: what the operands of a copy by one instruction must be, on whatever machine.
// What depends on addresses and extents of the call is asked where a target takes the instruction (dispatch).
#include <fmt/format.h>

#include "helve/ir/tensor/buffer_layout.h"
#include "helve/ir/tensor/group_product.h"
#include "helve/ir/tensor/matrix_move.h"
#include "helve/ir/tensor/matrix_product.h"
#include "helve/ir/tensor/product_types.h"
#include "helve/layout/notation.h"
#include "helve/support/text.h"
#include "verify_rules.h"

namespace helve::verify_rules {

namespace {

/// Operand `i` stands in memory that the instruction does not reach.
[[noreturn]] void refuse_buffer(const TileOp& op, size_t i, const std::string& reason, const std::string& remedy) {
  const Buffer& buffer = *op.region(i).buffer;
  refuse_argument(operation_text(op), std::string(op.row().params[i].name), fmt::format("'{}'", buffer.name), reason,
                  remedy, op.place(i), {declaration_note(buffer)});
}

constexpr const char* kNoShared = "it is not shared memory";
constexpr const char* kAllocateShared = "allocate it with T.alloc_shared";

/// One side is global memory, the other shared memory; a thread only loads.
void check_scopes(const TileOp& op) {
  const Buffer &src = *op.region(0).buffer, &dst = *op.region(1).buffer;
  if (is_global(src)) {
    if (dst.scope != MemoryScope::Shared) refuse_buffer(op, 1, kNoShared, kAllocateShared);
    return;
  }
  if (op.op == TileOpcode::CpAsync) refuse_buffer(op, 0, "it is no global tensor", "name a tensor of the call");
  if (src.scope != MemoryScope::Shared) refuse_buffer(op, 0, kNoShared, kAllocateShared);
  if (!is_global(dst)) refuse_buffer(op, 1, "it is no global tensor", "name a tensor of the call");
}

/// The elements of a constant shape.
int64_t elements(const std::vector<int64_t>& shape) {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

/// The registers of all threads that the region takes, if it is such.
const int64_t* registers_of(const Region& fragment) {
  const bool all_threads = fragment.ranges.size() == 2 && fragment.covers(0) && !fragment.ranges[1].point;
  if (!all_threads || !int_value(fragment.buffer->shape[0]) || !int_value(fragment.ranges[1].begin)) return nullptr;
  return int_value(fragment.ranges[1].extent);
}

/// Registers of all threads are as many as the layout has; before, the part has the shape of the memory and this
/// layout.
void check_fragment(const TileOp& op, const MatrixOperands& operands, const std::vector<int64_t>& shape) {
  const auto layout_fault = [&](const std::string& reason) {
    refuse_argument(operation_text(op), "layout", fmt::format("\"{}\"", to_string(operands.layout)), reason,
                    "give the layout of the region on tx and reg", op.place(2));
  };
  const Buffer& registers = *operands.fragment->buffer;
  const Layout& layout = operands.layout;
  std::string reason;
  if (!matrix_move(layout, shape, &reason)) layout_fault(reason);
  if (!operands.divided()) {
    const std::optional<FragmentPart> part = fragment_part(*operands.fragment, &reason);
    if (!part) {
      const size_t fragment = op.op == TileOpcode::LoadMatrix ? 1 : 0;
      refuse_buffer(op, fragment, reason, "name a part of which every thread holds as many elements");
    }
    if (!part->layout.equivalent(layout)) layout_fault(fmt::format("it is not the layout of '{}'", registers.name));
  } else if (layout.span(axes::tx()) != *int_value(registers.shape[0]) ||
             layout.span(axes::reg()) != *registers_of(*operands.fragment)) {
    layout_fault(fmt::format("it has {} threads and {} registers, the fragment has {}", layout.span(axes::tx()),
                             layout.span(axes::reg()), shape_text(operands.fragment->shape())));
  }
  const bool stores = op.op == TileOpcode::StoreMatrix;
  if (stores && !layout.replica().empty()) layout_fault("several threads hold one element");
}

/// A tile of shared memory and a fragment or a part of one, of one type of 16 bits.
void check_matrix_move(const TileOp& op) {
  const size_t fragment = op.op == TileOpcode::LoadMatrix ? 1 : 0, memory = 1 - fragment;
  const Buffer &tile = *op.region(memory).buffer, &registers = *op.region(fragment).buffer;
  if (tile.scope != MemoryScope::Shared) refuse_buffer(op, memory, kNoShared, kAllocateShared);
  if (registers.scope != MemoryScope::Fragment) {
    refuse_buffer(op, fragment, "it is no fragment", "allocate it with T.alloc_fragment");
  }
  if (tile.dtype.bits != 16) wrong_type(op, memory, "an element of " + operation_text(op), "a type of 16 bits");
  if (registers.dtype != tile.dtype) {
    wrong_type(op, fragment, "the fragment of " + operation_text(op), to_string(tile.dtype) + ", as the memory");
  }
  const MatrixOperands operands = matrix_operands(op);
  const std::optional<std::vector<int64_t>> shape = constant_shape(operands.memory->shape());
  if (!shape) refuse_buffer(op, memory, "its region has no constant shape", "give constant extents");
  if (operands.divided() && !registers_of(*operands.fragment)) {
    refuse_buffer(op, fragment, "it is not some registers of all threads of a fragment of threads and registers",
                  "name all threads, and a constant range of registers");
  }
  if (!operands.divided() && constant_shape(operands.fragment->shape()) != shape) {
    refuse_buffer(op, fragment, "it has not the shape of the memory's region", "name a part of that shape");
  }
  check_fragment(op, operands, *shape);
}

/// Operand `i` is one element.
void require_element(const TileOp& op, size_t i) {
  const std::optional<std::vector<int64_t>> shape = constant_shape(op.region(i).shape());
  if (shape && elements(*shape) == 1) return;
  refuse_argument(operation_text(op), std::string(op.row().params[i].name), shape_text(op.region(i).shape()),
                  "it is not one element", "write a buffer with a subscript for each dimension", op.place(i),
                  {declaration_note(*op.region(i).buffer)});
}

/// A byte, two neighbouring elements of a fragment, and a scale of another buffer.
void check_unpack(const TileOp& op) {
  const size_t at_dst = op.row().index_of("dst");
  const Region& dst = op.region(at_dst);
  const DType t = dst.buffer->dtype;
  require_element(op, 0);
  if (!(op.region(0).buffer->dtype == DType{TypeCode::UInt, 8})) {
    wrong_type(op, 0, "the byte of " + operation_text(op), "uint8");
  }
  if (dst.buffer->scope != MemoryScope::Fragment) {
    refuse_buffer(op, at_dst, "it is no fragment", "allocate it with T.alloc_fragment");
  }
  if (!t.is_small_float() || t.bits != 16) {
    wrong_type(op, at_dst, "an element of " + operation_text(op), "float16 or bfloat16");
  }
  const std::optional<std::vector<int64_t>> shape = constant_shape(dst.shape());
  if (!shape || elements(*shape) != 2 || dst.ranges.back().point || shape->back() != 2) {
    refuse_argument(operation_text(op), "dst", shape_text(dst.shape()), "it is not two elements of the last dimension",
                    "give a slice of length 2 there, and a subscript for each other dimension", op.place(at_dst),
                    {declaration_note(*dst.buffer)});
  }
  const std::optional<size_t> scale = op.row().find("scale");
  if (!scale) return;
  require_element(op, *scale);
  const Buffer& scales = *op.region(*scale).buffer;
  if (!(scales.dtype == t) && !(scales.dtype == kFloat32)) {
    wrong_type(op, *scale, "the scale of " + operation_text(op), to_string(t) + " or float32");
  }
  if (&scales == dst.buffer.get()) refuse_buffer(op, *scale, "it is written too", "copy the scale to another buffer");
}

/// An operand of three constants.
void require_three(const TileOp& op, std::string_view name, const std::string& remedy) {
  const size_t at = op.row().index_of(name);
  const std::optional<std::vector<int64_t>> given = constant_shape(op.exprs(at));
  if (given && given->size() == 3) return;
  refuse_argument(operation_text(op), std::string(name), shape_text(op.exprs(at)), "it is not three constants", remedy,
                  op.place(at));
}

/// Factors that the instruction multiplies, and the sums for them.
void check_product_types(const TileOp& op, bool by_groups) {
  const DType factor = op.region(0).buffer->dtype;
  const ProductTypes* types = product_types(factor);
  if (!types || !(by_groups ? types->by_groups : types->by_warps)) {
    wrong_type(op, 0, "A of " + operation_text(op), factor_types(by_groups));
  }
  if (op.region(1).buffer->dtype != factor)
    wrong_type(op, 1, "B of " + operation_text(op), to_string(factor) + ", as A");
  if (op.region(2).buffer->dtype != types->sum) wrong_type(op, 2, "C of " + operation_text(op), to_string(types->sum));
}

/// Operand `i` is a whole fragment of `shape` with this layout or, divided, of its threads and registers.
void check_product_fragment(const TileOp& op, size_t i, const Layout& layout, bool divided,
                            const std::vector<int64_t>& shape) {
  const Region& region = op.region(i);
  if (region.buffer->scope != MemoryScope::Fragment) {
    refuse_buffer(op, i, "it is no fragment", "allocate it with T.alloc_fragment");
  }
  const std::vector<int64_t> places = {layout.span(axes::tx()), layout.span(axes::reg())};
  const std::vector<int64_t>& expected = divided ? places : shape;
  if (!region.whole() || constant_shape(region.buffer->shape) != expected) {
    refuse_buffer(op, i, fmt::format("it is not a whole fragment of shape {}", shape_text(expected)),
                  "name the whole fragment");
  }
  if (!divided && (!region.buffer->layout || !thread_layout_of(*region.buffer).equivalent(layout))) {
    refuse_buffer(op, i, "its layout is not the one that the operation names", "allocate it with this layout");
  }
}

/// Whole fragments in the layouts of the instruction.
void check_matrix_product(const TileOp& op) {
  const size_t at_layouts = op.row().index_of("layout_A");
  require_three(op, "shape", "give [M, N, K]");
  check_product_types(op, false);
  const ProductOperands operands = product_operands(op);
  const ProductShape& shape = operands.shape;
  std::string reason;
  if (!matrix_product(shape, operands.layouts, &reason)) {
    refuse_argument(operation_text(op), "layout_C", fmt::format("\"{}\"", to_string(operands.layouts.c)), reason,
                    fmt::format("give each operand the layout of mma.m16n8k{}", shape.depth()),
                    op.place(at_layouts + 2));
  }
  const std::vector<int64_t> wanted[] = {
      shape.transpose_a ? std::vector{shape.k, shape.m} : std::vector{shape.m, shape.k},
      shape.transpose_b ? std::vector{shape.n, shape.k} : std::vector{shape.k, shape.n},
      {shape.m, shape.n}};
  for (size_t i = 0; i < 3; ++i) {
    check_product_fragment(op, i, op.layout(at_layouts + i), operands.divided(), wanted[i]);
  }
}

/// A factor of T.wgmma: a whole tile of shared memory with the descriptor that the operation names.
void check_group_factor(const TileOp& op, size_t i, const FactorTile& tile, const MatrixDescriptor& given) {
  const Region& region = op.region(i);
  if (region.buffer->scope != MemoryScope::Shared) refuse_buffer(op, i, kNoShared, kAllocateShared);
  if (constant_shape(region.shape()) != std::vector<int64_t>{tile.rows, tile.columns}) {
    refuse_buffer(
        op, i, fmt::format("it is not a tile of shape {}", shape_text(std::vector<int64_t>{tile.rows, tile.columns})),
        "name a tile of the product's shape");
  }
  std::string reason;
  const std::optional<Layout> layout = tile_layout(region, &reason);
  if (!layout) refuse_buffer(op, i, reason, "name whole tiles");
  const std::optional<MatrixDescriptor> found = matrix_descriptor(*layout, tile, &reason);
  if (!found) {
    refuse_buffer(op, i, reason, fmt::format("allocate it with layout=\"{}\"", to_string(factor_layout(tile))));
  }
  if (*found == given) return;
  const size_t at = op.row().index_of(i == 0 ? "descriptor_A" : "descriptor_B");
  refuse_argument(operation_text(op), std::string(op.row().params[at].name), shape_text(op.exprs(at)),
                  "it does not describe the layout of its tile",
                  fmt::format("give [{}, {}, {}]", found->leading, found->stride, found->swizzle), op.place(at));
}

/// Tiles of shared memory, or registers for A, and a whole fragment of sums.
void check_group_product(const TileOp& op) {
  require_three(op, "shape", "give [M, N, K]");
  const bool registers = op.region(0).buffer->scope == MemoryScope::Fragment;
  const size_t at_a = op.row().index_of("descriptor_A");
  if (registers && !op.exprs(at_a).empty()) {
    refuse_argument(operation_text(op), "descriptor_A", shape_text(op.exprs(at_a)), "A is in registers", "give []",
                    op.place(at_a));
  }
  for (const char* name : {"descriptor_A", "descriptor_B"}) {
    if (registers && op.row().index_of(name) == at_a) continue;
    require_three(op, name, "give [leading offset, stride offset, swizzle] in bytes");
  }
  check_product_types(op, true);
  const GroupOperands operands = group_operands(op);
  const ProductShape& shape = operands.shape;
  const size_t at_layout = op.row().index_of("layout_C");
  const auto refuse_sums = [&](const std::string& reason, const std::string& remedy) {
    refuse_argument(operation_text(op), "layout_C", fmt::format("\"{}\"", to_string(operands.sums)), reason, remedy,
                    op.place(at_layout));
  };
  if (const std::optional<std::string> why = uneven_for_groups(shape)) {
    refuse_sums(*why, "multiply tiles of such multiples");
  }
  const bool turned = op.transposes(0) && (registers || shape.bits != 16);
  if (turned || (!op.transposes(1) && shape.bits != 16)) {
    const size_t at = op.row().index_of(turned ? "transpose_A" : "transpose_B");
    refuse_argument(
        operation_text(op), std::string(op.row().params[at].name), turned ? "True" : "False",
        fmt::format("K is the last dimension of {}",
                    turned && registers ? "A in registers"
                                        : fmt::format("factors of {}", to_string(op.region(0).buffer->dtype))),
        turned ? "give A as (M, K)" : "give B as (N, K)", op.place(at));
  }
  if (!registers) check_group_factor(op, 0, tile_of_a(shape), operands.descriptor_a);
  check_group_factor(op, 1, tile_of_b(shape), operands.descriptor_b);
  const int64_t unit = column_unit(operands.descriptor_b, tile_of_b(shape));
  if (!group_product(shape, operands.sums, unit)) {
    const std::optional<GroupProduct> one = divided_product(shape, 1, unit);
    refuse_sums("it does not place C where wgmma leaves its sums",
                fmt::format("give that of the sums, for one warpgroup \"{}\"", to_string(group_sums(*one))));
  }
  check_product_fragment(op, 2, operands.sums, operands.divided(), {shape.m, shape.n});
  if (!registers) return;
  check_product_fragment(op, 0, group_factor(operands.product(), shape), operands.divided(), {shape.m, shape.k});
}

}  // namespace

void verify_copy_instruction(const TileOp& op) {
  check_scopes(op);
  const DType dtype = op.region(0).buffer->dtype;
  if (dtype.bits < 8) wrong_type(op, 0, "an element of " + operation_text(op), "a type of 8 bits or more");
  if (op.region(1).buffer->dtype != dtype) {
    wrong_type(op, 1, "the destination of " + operation_text(op), to_string(dtype) + ", as the source");
  }
  if (op.op != TileOpcode::CpAsync) return;
  verify_run(op);
  const std::optional<std::vector<int64_t>> shape = constant_shape(op.region(0).shape());
  const int64_t bytes = elements(*shape) * dtype.bytes();
  if (bytes == 4 || bytes == 8 || bytes == 16) return;
  refuse_argument(operation_text(op), "src", shape_text(op.region(0).shape()),
                  fmt::format("4, 8 or 16 bytes move at once, not {}", bytes), "copy a run of as many bytes",
                  op.place(0), {declaration_note(*op.region(0).buffer)});
}

void verify_st_async(const TileOp& op) {
  const Buffer &src = *op.region(0).buffer, &dst = *op.region(1).buffer;
  for (const size_t i : {0, 1}) require_element(op, i);
  if (dst.scope != MemoryScope::Shared) refuse_buffer(op, 1, kNoShared, kAllocateShared);
  if (dst.dtype.bits != 32 && dst.dtype.bits != 64) wrong_type(op, 1, "the element of T.st_async", "4 or 8 bytes");
  if (src.dtype != dst.dtype) wrong_type(op, 0, "the value of T.st_async", to_string(dst.dtype) + ", as its target");
}

void verify_instruction(const TileOp& op) {
  switch (op.op) {
    case TileOpcode::LoadMatrix:
    case TileOpcode::StoreMatrix: return check_matrix_move(op);
    case TileOpcode::UnpackInt4:
    case TileOpcode::UnpackScaledInt4: return check_unpack(op);
    case TileOpcode::Mma: return check_matrix_product(op);
    case TileOpcode::Wgmma: return check_group_product(op);
    default: HELVE_FAIL("an instruction without a rule");
  }
}

}  // namespace helve::verify_rules
