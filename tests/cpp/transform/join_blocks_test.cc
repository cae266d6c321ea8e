// Blocks side by side become one: the same stores, whichever blocks are joined.
#include "run_pass.h"

namespace helve::testing {
namespace {

/// B = A + 1 in tiles of `rows` x `columns`; `turned` writes the transpose.
FunctionRef tiles(int64_t m, int64_t n, int64_t rows, int64_t columns, bool turned = false) {
  const VarRef r = make_var("r"), c = make_var("c"), i = make_var("i"), j = make_var("j");
  const BufferRef a = make_buffer("A", kFloat32, MemoryScope::Param, {idx(m), idx(n)});
  const BufferRef b = make_buffer("B", kFloat32, MemoryScope::Param, turned ? extents({n, m}) : extents({m, n}));
  const Expr row = Expr(r) * idx(rows) + Expr(i), column = Expr(c) * idx(columns) + Expr(j);
  const Stmt put = turned ? store(b, {column, row}, load(a, {row, column}) + f32(1))
                          : store(b, {row, column}, load(a, {row, column}) + f32(1));
  const Stmt body = for_loop(LoopKind::Parallel, i, idx(rows), for_loop(LoopKind::Vectorized, j, idx(columns), put));
  return dynamic_function("main", {}, {a, b}, kernel({r, c}, {idx(m / rows), idx(n / columns)}, 128, body));
}

TEST(JoinBlocks, WalksRowsOfNeighbours) {
  expect_prints(join_blocks, tiles(64, 1024, 2, 16), R"(
@T.prim_func
def main(A: T.Tensor((64, 1024), "float32"), B: T.Tensor((64, 1024), "float32")):
    with T.Kernel(32, 8) as (r, c):
        for i in T.Parallel(2):
            for c_1 in T.serial(8):
                for j in T.vectorized(16):
                    B[r * 2 + i, (c * 8 + c_1) * 16 + j] = A[r * 2 + i, (c * 8 + c_1) * 16 + j] + 1.0
)");
}

TEST(JoinBlocks, ComputesTheSame) {
  for (const FunctionRef& f : {tiles(64, 1024, 2, 16), tiles(512, 48, 1, 4), tiles(600, 12, 2, 2)}) {
    EXPECT_NE(join_blocks(f, {}), f);
    expect_same_results(join_blocks, f);
  }
}

TEST(JoinBlocks, LeavesWhatGainsNothing) {
  const FunctionRef few = tiles(32, 64, 2, 16), long_rows = tiles(512, 1024, 1, 512);
  const FunctionRef turned = tiles(64, 1024, 2, 16, true);
  for (const FunctionRef& f : {few, long_rows, turned}) EXPECT_EQ(join_blocks(f, {}), f);
}

}  // namespace
}  // namespace helve::testing
