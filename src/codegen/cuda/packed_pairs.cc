// The two elements of int4 in a byte, converted together.
// Tensor cores multiply floats of 16 bits, so factors of 4 bits are converted for each product, and what that takes
// decides how fast it is: integers become floats at a fraction of the rate of other instructions, and each lane has a
// shift, a scale and a rounding of its own. So a loop of two lanes that converts the halves of a byte to neighbouring
// registers becomes a few operations on pairs: the halves become mantissas of numbers whose last bit counts as 1, of
// which the rest is taken off exactly. A scale of the same 16 bits multiplies both: the product of two such numbers is
// exact in float32, so it is rounded once here as there. One of float32 multiplies each.
// Before:  for v in T.vectorized(2): w[tx, v] = T.cast(T.cast(q[b] << 28 - v * 4 >> 28, "int8"), "bfloat16")
// After:   helve_unpack_int4(w + 0, q[b]);
#include <fmt/format.h>

#include "helve/arith/simplify.h"
#include "helve/codegen/c/c_types.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/visit.h"
#include "kernel_emitter.h"

namespace helve::cuda {

namespace {

bool uses(const Expr& e, const Var& var) {
  bool found = false;
  walk(e, [&](const Expr& each) { found |= as<Var>(each) == &var; });
  return found;
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
  if (!byte || !(byte->dtype == DType{TypeCode::UInt, 8}) || uses(wide->value, lane)) return nullptr;
  const auto is = [&](const Expr& e, int64_t at, int64_t wanted) {
    const Expr found = simplify(substitute(e, {{&lane, int_imm(at)}}));
    const int64_t* number = int_value(found);
    return number && *number == wanted;
  };
  const bool both = is(left->args[1], 0, 28) && is(left->args[1], 1, 24) && is(right->args[1], 0, 28);
  return both ? byte : nullptr;
}

/// What both elements are multiplied by, of the dtype or float32; null if it is something else.
const Load* scale_of(const Expr& e, DType t, const Var& lane) {
  const Cast* cast = as<Cast>(e);
  const Load* load = as<Load>(cast && cast->dtype == kFloat32 ? cast->value : e);
  return load && load->dtype == (cast ? t : kFloat32) && !load->width && !uses(e, lane) ? load : nullptr;
}

}  // namespace

bool KernelEmitter::unpack_pair(const For& s) {
  const Store* store = as<Store>(s.body);
  const int64_t *begin = int_value(s.begins[0]), *lanes = int_value(s.extents[0]);
  if (!store || store->mode != StoreMode::Write || !begin || *begin != 0 || !lanes || *lanes != 2) return false;
  const Buffer& to = *store->buffer;
  const DType t = to.dtype;
  if (to.scope != MemoryScope::Fragment || to.place == ArrayPlace::Memory || !t.is_small_float() || t.bits != 16 ||
      store->width) {
    return false;
  }
  const Var& lane = *s.vars[0];
  const Expr next = substitute(element_offset(to, store->indices, 1), {{&lane, Expr(s.vars[0]) + int_imm(1)}});
  const Expr step = simplify(next - element_offset(to, store->indices, 1));
  if (!int_value(step) || *int_value(step) != 1) return false;
  const Expr& value = stored(*store);
  const Load *byte = unpacked_byte(under_casts(value), lane), *scale = nullptr;
  const Apply* product = as_op(value, Op::Mul);
  for (size_t i = 0; product && !byte && i < 2; ++i) {
    scale = scale_of(product->args[1 - i], t, lane);
    byte = scale ? unpacked_byte(under_casts(product->args[i]), lane) : nullptr;
  }
  if (!byte || byte->width) return false;
  need("int4_" + c::small_float_name(t));
  const std::string start = text(vector_start(s, to, store->indices), c::precedence_of("+") + 1);
  const std::string place = fmt::format("{} + {}", names_.of(&to, to.name), start);
  const std::string factor = scale ? ", " + raw_load(*scale) : "";
  line(fmt::format("helve_unpack_int4({}, {}{});", place, raw_load(*byte), factor), s.span);
  return true;
}

}  // namespace helve::cuda
