// Halves of a byte by shifts.
// It is the loop that pack_elements makes of conversions from int4, so unpack_pairs finds it again.
#include "unpack_int4.h"

#include "helve/ir/tensor/region.h"

namespace helve {

Stmt unpacked_halves(const TileOp& op, LoopKind kind) {
  const auto element = [](const Region& region) { return load(region.buffer, region_begin(region)); };
  const Region& to = op.region(op.row().index_of("dst"));
  const VarRef half = make_var("v");
  std::vector<Expr> place = region_begin(to);
  place.back() = plus(place.back(), Expr(half));
  const Expr byte = cast(element(op.region(0)), kInt32);
  const Expr left = cast(int_imm(28) - Expr(half) * int_imm(4), kInt32);
  const Expr bits = apply(Op::ShiftRight, {apply(Op::ShiftLeft, {byte, left}), int_imm(28, kInt32)});
  Expr value = cast(cast(bits, {TypeCode::Int, 8}), kFloat32);
  if (const std::optional<size_t> scale = op.row().find("scale")) {
    value = value * cast(element(op.region(*scale)), kFloat32);
  }
  const Stmt body = store(to.buffer, place, cast(value, to.buffer->dtype), op.span);
  return for_loop(kind, {half}, {int_imm(0)}, {int_imm(2)}, body, 1, op.span);
}

}  // namespace helve
