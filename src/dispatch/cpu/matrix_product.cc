// Products of fragments on the CPU.
// For a whole block they are products of tiles; for its threads, each sum takes its factors from the registers that the
// instruction reads.
#include "helve/ir/tensor/matrix_product.h"

#include "helve/ir/tensor/buffer_layout.h"
#include "helve/layout/warp.h"
#include "helve/support/diagnostic.h"
#include "schedules.h"

namespace helve::cpu {

namespace {

/// The part of one instruction, whose operands begin at registers `a`, `b` and `c`: the four sums of each thread, one
/// after the other.
Stmt part(const ProductOperands& operands, int64_t a, int64_t b, int64_t c, const Span& span) {
  const BufferRef &left = operands.a.buffer, &right = operands.b.buffer, &sums = operands.c.buffer;
  const VarRef tx = make_var("tx"), q = make_var("q"), k = make_var("k");
  const Expr lane = floor_mod(Expr(tx), int_imm(kWarp)), warp = Expr(tx) - lane;
  const Expr row = floor_div(lane, int_imm(4));
  const Expr column = floor_mod(lane, int_imm(4)) * int_imm(2) + floor_mod(Expr(q), int_imm(2));
  const int64_t packed = operands.shape.packed(), depth = operands.shape.depth();
  const Expr lower = floor_div(Expr(q), int_imm(2)), far = floor_div(Expr(k), int_imm(depth / 2));
  const Expr word = floor_div(floor_mod(Expr(k), int_imm(depth / 2)), int_imm(packed));
  const Expr inner = floor_mod(Expr(k), int_imm(packed));
  const auto element = [&](const BufferRef& buffer, const Expr& thread, const Expr& reg) {
    return cast(load(buffer, {thread, reg}), sums->dtype);
  };
  const Expr x = element(left, warp + row * int_imm(4) + word,
                         int_imm(a) + inner + lower * int_imm(packed) + far * int_imm(2 * packed));
  const Expr y = element(right, warp + column * int_imm(4) + word, int_imm(b) + inner + far * int_imm(packed));
  const std::vector<Expr> own = {Expr(tx), int_imm(c) + Expr(q)};
  const Stmt add = store(sums, own, load(sums, own) + x * y, span);
  const Stmt sum = for_loop(LoopKind::Serial, k, int_imm(depth), add, span);
  return for_loop(LoopKind::Parallel, {tx, q}, {int_imm(0), int_imm(0)}, {sums->shape[0], int_imm(4)}, sum, 1, span);
}

}  // namespace

Stmt lower_matrix_product(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const ProductOperands operands = product_operands(op);
  if (!operands.divided()) {
    const Stmt gemm = tile_op(TileOpcode::Gemm,
                              {operands.a, operands.b, operands.c, operands.shape.transpose_a,
                               operands.shape.transpose_b, false, std::string()},
                              op.span);
    return lower_gemm(*as<TileOp>(gemm), context, declined);
  }
  std::string reason;
  const std::optional<MatrixProduct> product = matrix_product(operands.shape, operands.layouts, &reason);
  HELVE_CHECK(product, reason);
  std::vector<Stmt> out;
  const auto of = [](const std::vector<int64_t>& parts, int64_t at) { return parts[static_cast<size_t>(at)]; };
  for (int64_t l = 0; l < product->k; ++l) {
    for (int64_t i = 0; i < product->m; ++i) {
      for (int64_t j = 0; j < product->n; ++j) {
        out.push_back(part(operands, of(product->a, i * product->k + l), of(product->b, l * product->n + j),
                           of(product->c, i * product->n + j), op.span));
      }
    }
  }
  return seq(std::move(out));
}

}  // namespace helve::cpu
