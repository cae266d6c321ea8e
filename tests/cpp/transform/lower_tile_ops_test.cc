// Operands of tile operations that read the memory which the operation writes.
// The operation sees them as they were before: they are values, not formulas for each element.
#include "run_pass.h"

namespace helve::testing {
namespace {

Region whole(const BufferRef& b) { return whole_region(b); }
Stmt copy(Region from, Region to) {
  const Expr zero = from.buffer->dtype.is_float() ? f32(0) : int_imm(0, from.buffer->dtype);
  return tile_op(TileOpcode::Copy, {std::move(from), std::move(to), zero});
}

TEST(LowerTileOps, TheValueOfAFillIsReadOnce) {
  BufferRef a = param("A", kFloat32, {5}), s = shared("S", kFloat32, {5});
  Stmt fill = tile_op(TileOpcode::Fill, {whole(s), load(s, {idx(2)}) * f32(2) + f32(1)});
  const FunctionRef f =
      function("main", {a}, one_block({alloc(s), copy(whole(a), whole(s)), fill, copy(whole(s), whole(a))}));
  expect_same_results(lower_tile_ops, f);
  expect_same_on_all_stages(f);
}

TEST(LowerTileOps, ARegionStandsWhereItsBeginWasBeforeTheCopy) {
  BufferRef a = param("A", kInt32, {8}), s = shared("S", kInt32, {8}), t = shared("T", kInt32, {3});
  const Expr at = floor_mod(cast(load(s, {idx(0)}), kIndex), idx(6));
  Stmt moved = copy(whole(t), box(s, {{at, 3}}));
  const FunctionRef f =
      function("main", {a},
               one_block({alloc(s), alloc(t), copy(whole(a), whole(s)), copy(box(a, {{idx(5), 3}}), whole(t)),
                          store(s, {idx(0)}, int_imm(0, kInt32)), moved, copy(whole(s), whole(a))}));
  expect_same_results(lower_tile_ops, f);
  expect_same_on_all_stages(f);
}

}  // namespace
}  // namespace helve::testing
