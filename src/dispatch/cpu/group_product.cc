// Products of warpgroups on the CPU.
// For a whole block they are products of tiles; for its threads, each sum is computed from its row and its column.
#include "helve/ir/tensor/group_product.h"

#include "element_nest.h"
#include "helve/ir/expr/number.h"
#include "helve/layout/warp.h"
#include "schedules.h"

namespace helve::cpu {

namespace {

/// value % extent, value / extent, of a number whose digits are taken one after the other, the fastest first.
Expr take(Expr* number, int64_t extent) {
  const Expr digit = floor_mod(*number, int_imm(extent));
  *number = floor_div(*number, int_imm(extent));
  return digit;
}

/// A's element of depth `k` in the row of thread `tx`'s sums: half `lower` of the rows of part `part` of its warpgroup.
Expr own_factor(const GroupOperands& operands, const GroupProduct& product, const Expr& tx, const Expr& part,
                const Expr& lower, Expr k) {
  const int64_t packed = operands.shape.packed(), words = 4 * packed;
  const Expr inner = take(&k, packed), thread = take(&k, 4), half = take(&k, 2);
  const Expr reg = (part * int_imm(product.depths) + k) * int_imm(words) + half * int_imm(2 * packed) +
                   lower * int_imm(packed) + inner;
  const Expr first = tx - floor_mod(tx, int_imm(4));  // of the four threads that share the row
  return cast(load(operands.a.buffer, {first + thread, reg}), operands.c.buffer->dtype);
}

}  // namespace

Stmt lower_group_product(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const GroupOperands operands = group_operands(op);
  const ProductShape& shape = operands.shape;
  if (!operands.divided()) {
    const Stmt gemm =
        tile_op(TileOpcode::Gemm,
                {operands.a, operands.b, operands.c, shape.transpose_a, shape.transpose_b, *op.clears(), std::string()},
                op.span);
    return lower_gemm(*as<TileOp>(gemm), context, declined);
  }
  const GroupProduct product = operands.product();
  const BufferRef& sums = operands.c.buffer;
  const VarRef tx = make_var("tx"), q = make_var("q"), k = make_var("k");
  Expr thread = Expr(tx), reg = Expr(q);
  const Expr pair = take(&thread, 4), line = take(&thread, 8), warp = take(&thread, kWarpgroup / kWarp);
  const Expr group_column = take(&thread, product.groups.columns), group_row = thread;
  const Expr odd = take(&reg, 2), lower = take(&reg, 2), eight = take(&reg, product.own_columns() / 8), part = reg;
  const Expr row = (part * int_imm(product.groups.rows) + group_row) * int_imm(kGroupRows) + warp * int_imm(16) +
                   lower * int_imm(8) + line;
  const Expr column = group_column * int_imm(product.own_columns()) + eight * int_imm(8) + pair * int_imm(2) + odd;
  const auto element = [&](const Region& factor, const Expr& first, const Expr& second, bool turned) {
    const std::vector<Expr> at = turned ? std::vector{second, first} : std::vector{first, second};
    return cast(load(factor.buffer, region_indices(factor, at)), sums->dtype);
  };
  const Expr x = operands.in_registers() ? own_factor(operands, product, Expr(tx), part, lower, Expr(k))
                                         : element(operands.a, row, Expr(k), shape.transpose_a);
  const Expr y = element(operands.b, Expr(k), column, shape.transpose_b);
  const std::vector<Expr> own = {Expr(tx), Expr(q)};
  const Stmt add = store(sums, own, load(sums, own) + x * y, op.span);
  Stmt sum = for_loop(LoopKind::Serial, k, int_imm(shape.k), add, op.span);
  if (*op.clears()) sum = seq({store(sums, own, number_imm(0, sums->dtype), op.span), sum});
  return for_loop(LoopKind::Parallel, {tx, q}, {int_imm(0), int_imm(0)}, {sums->shape[0], sums->shape[1]}, sum, 1,
                  op.span);
}

}  // namespace helve::cpu
