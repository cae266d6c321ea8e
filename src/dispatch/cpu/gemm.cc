// Matrix products on the CPU.
// A row of C stays in an accumulator while scaled rows of B are added to it; the inner loop is contiguous if B is. A
// row with a dynamic extent is processed in pieces, since an accumulator has a constant extent.
#include "element_nest.h"
#include "helve/dispatch/reduction.h"
#include "helve/ir/expr/number.h"
#include "schedules.h"

namespace helve::cpu {

namespace {

/// Columns that one accumulator holds when the number of columns is not constant.
constexpr int64_t kPiece = 64;

}  // namespace

Stmt lower_gemm(const TileOp& op, const LoweringContext&, std::string*) {
  const Region& a = op.region(0);
  const Region& b = op.region(1);
  const Region& c = op.region(2);
  const bool transpose_a = op.flag(3);
  const bool transpose_b = op.flag(4);
  const bool clear = op.flag(5);
  const DType acc = accumulator(c.buffer->dtype);
  const Expr rows = c.shape()[0];
  const Expr columns = c.shape()[1];
  const Expr depth = a.shape()[transpose_a ? 0 : 1];

  const bool pieces = !int_value(columns);
  VarRef piece = make_var("piece");
  const Expr first = pieces ? Expr(piece) * int_imm(kPiece) : int_imm(0);
  const Expr width = pieces ? min(int_imm(kPiece), columns - first) : columns;
  BufferRef row = make_buffer("row", acc, MemoryScope::Local, {pieces ? int_imm(kPiece) : columns});
  const Expr zero = number_imm(0, acc);
  VarRef i = make_var("i");
  VarRef k = make_var("k");
  auto element = [&](const Region& region, bool transposed, const Expr& first, const Expr& second) {
    std::vector<Expr> at = transposed ? std::vector<Expr>{second, first} : std::vector<Expr>{first, second};
    return cast(load(region.buffer, region_indices(region, at)), acc);
  };
  auto over_columns = [&](const std::function<Stmt(const Expr&)>& body) {
    VarRef j = make_var("j");
    return for_loop(LoopKind::Parallel, j, width, body(Expr(j)));
  };
  auto place = [&](const Expr& j) { return region_indices(c, {Expr(i), plus(first, j)}); };

  Stmt start =
      over_columns([&](const Expr& j) { return store(row, {j}, clear ? zero : cast(load(c.buffer, place(j)), acc)); });
  VarRef scale = make_var("a", acc);
  Stmt step = over_columns([&](const Expr& j) {
    const Expr right = element(b, transpose_b, Expr(k), plus(first, j));
    const Expr sum =
        acc.is_float() ? apply(Op::Fma, {Expr(scale), right, load(row, {j})}) : load(row, {j}) + Expr(scale) * right;
    return store(row, {j}, sum);
  });
  Stmt multiply =
      for_loop(LoopKind::Serial, k, depth, seq({bind(scale, element(a, transpose_a, Expr(i), Expr(k))), step}));
  Stmt finish =
      over_columns([&](const Expr& j) { return store(c.buffer, place(j), cast(load(row, {j}), c.buffer->dtype)); });
  Stmt whole = seq({alloc(row), start, multiply, finish});
  if (pieces) whole = for_loop(LoopKind::Serial, piece, ceil_div(columns, int_imm(kPiece)), whole);
  return for_loop(LoopKind::Serial, i, rows, whole);
}

}  // namespace helve::cpu
