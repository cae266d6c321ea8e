// Both int4 of a byte are converted to neighbouring registers by one instruction.
// Input: the program of the threads of a block, with widths. Output: the same; a loop of two lanes that converts the
// low and the high half of one byte to registers of float16 or bfloat16 that follow one another, times nothing or one
// scale, is T.unpack_int4 or T.unpack_scaled_int4. It comes after place_arrays, since arrays in memory stay loops, and
// after widen_accesses, which takes conditions of all lanes out of loops.
// Before:  for v in T.vectorized(2):
//              w[tx, r * 2 + v] = T.cast(T.cast(q[b], "int32") << 28 - v * 4 >> 28, "int8") * s[r]   # with their casts
// After:   T.unpack_scaled_int4(q[b], s[r], w[tx, r * 2:r * 2 + 2])
// Values are the same bit for bit: all of int4 are values of either type, and a product is that of float32 in both.
#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

bool is_number(const Expr& e, int64_t wanted) {
  const Expr found = simplify(e);
  const int64_t* number = int_value(found);
  return number && *number == wanted;
}

/// One element, which is the same in both lanes.
bool is_element(const Load* load, DType dtype, const Var& lane) {
  return load && load->dtype == dtype && !load->width && !mentions(Expr(load), &lane);
}

/// The value under casts to floats that have all values of int8.
const Expr& under_casts(const Expr& e) {
  const Cast* cast = as<Cast>(e);
  const bool exact = cast && cast->dtype.is_float() && cast->dtype.bits >= 16;
  return exact ? under_casts(cast->value) : e;
}

/// The byte of which the value is the low half in lane 0 and the high one in lane 1, as int4; null if there is none.
const Load* unpacked_byte(const Expr& value, const Var& lane) {
  const Cast* narrow = as<Cast>(value);
  if (!narrow || !(narrow->dtype == DType{TypeCode::Int, 8})) return nullptr;
  const Apply* right = as_op(narrow->value, Op::ShiftRight);
  const Apply* left = right ? as_op(right->args[0], Op::ShiftLeft) : nullptr;
  const Cast* wide = left ? as<Cast>(left->args[0]) : nullptr;
  const Load* byte = wide && wide->dtype == kInt32 ? as<Load>(wide->value) : nullptr;
  if (!is_element(byte, {TypeCode::UInt, 8}, lane)) return nullptr;
  const auto in_lane = [&](const Expr& e, int64_t at) { return substitute(e, {{&lane, int_imm(at)}}); };
  const bool both = is_number(in_lane(left->args[1], 0), 28) && is_number(in_lane(left->args[1], 1), 24) &&
                    is_number(in_lane(right->args[1], 0), 28) && is_number(in_lane(right->args[1], 1), 28);
  return both ? byte : nullptr;
}

/// What both elements are multiplied by, of the dtype or float32; null if it is something else.
const Load* scale_of(const Expr& e, DType t, const Var& lane) {
  const Cast* cast = as<Cast>(e);
  const Load* load = as<Load>(cast && cast->dtype == kFloat32 ? cast->value : e);
  return is_element(load, cast ? t : kFloat32, lane) ? load : nullptr;
}

/// What a loop of two lanes converts.
struct Pair {
  const Load* byte = nullptr;
  const Load* scale = nullptr;  ///< or none
};

/// The operands of the value that a lane stores as `t`; no byte if it is none of these conversions.
Pair converted(const Expr& stored, DType t, const Var& lane) {
  const Cast* rounded = as<Cast>(stored);
  const Expr& value = rounded && rounded->dtype == t ? rounded->value : stored;
  if (const Load* byte = unpacked_byte(under_casts(value), lane)) return {byte, nullptr};
  const Apply* product = as_op(value, Op::Mul);
  for (size_t i = 0; product && i < 2; ++i) {
    const Load* scale = scale_of(product->args[1 - i], t, lane);
    const Load* byte = scale ? unpacked_byte(under_casts(product->args[i]), lane) : nullptr;
    if (byte) return {byte, scale};
  }
  return {};
}

/// Two registers of a thread that follow one another, the first one in lane 0; nothing if the store is to others.
std::optional<Region> two_registers(const Store& store, const Var& lane) {
  const Buffer& to = *store.buffer;
  if (to.scope != MemoryScope::Fragment || to.place == ArrayPlace::Memory) return std::nullopt;
  Region out{store.buffer, {}};
  for (const Expr& index : store.indices) out.ranges.push_back({index, int_imm(1), true});
  const Expr last = out.ranges.back().begin;
  for (size_t d = 0; d + 1 < out.ranges.size(); ++d) {
    if (mentions(store.indices[d], &lane)) return std::nullopt;
  }
  const auto in_lane = [&](int64_t at) { return substitute(last, {{&lane, int_imm(at)}}); };
  if (!is_number(in_lane(1) - in_lane(0), 1)) return std::nullopt;
  out.ranges.back() = {expr_of(sum_of(in_lane(0))), int_imm(2), false};
  return out;
}

Region element(const Load& load) {
  Region out{buffer_ref(load.buffer), {}};
  for (const Expr& index : load.indices) out.ranges.push_back({index, int_imm(1), true});
  return out;
}

Stmt unpacked(const Stmt& s) {
  const For* loop = as<For>(s);
  if (!loop || loop->loop != LoopKind::Vectorized) return s;
  const Store* store = as<Store>(loop->body);
  if (!store || store->mode != StoreMode::Write || !is_number(loop->begins[0], 0) || !is_number(loop->extents[0], 2)) {
    return s;
  }
  const DType t = store->buffer->dtype;
  const Var& lane = *loop->vars[0];
  const std::optional<Region> to = two_registers(*store, lane);
  if (!to || !t.is_small_float() || t.bits != 16) return s;
  const Pair pair = converted(store->value, t, lane);
  if (!pair.byte) return s;
  if (!pair.scale) return tile_op(TileOpcode::UnpackInt4, {element(*pair.byte), *to}, s->span);
  if (buffer_ref(pair.scale->buffer) == store->buffer) return s;
  return tile_op(TileOpcode::UnpackScaledInt4, {element(*pair.byte), element(*pair.scale), *to}, s->span);
}

}  // namespace

FunctionRef unpack_pairs(const FunctionRef& f, const PassOptions&) { return with_body(f, rewrite(f->body, unpacked)); }

}  // namespace helve
