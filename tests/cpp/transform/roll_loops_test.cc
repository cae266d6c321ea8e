// Which loops are rolled.
#include "helve/ir/tensor/code_hints.h"
#include "run_pass.h"

namespace helve::testing {
namespace {

/// Rows of `lanes` elements, doubled by loops of `kind`.
FunctionRef rows(LoopKind kind, int64_t lanes, bool scheduled = false) {
  const BufferRef x = param("X", kInt32, {4, lanes}), y = param("Y", kInt32, {4, lanes});
  const VarRef r = make_var("r"), l = make_var("l");
  const Stmt body = loop(LoopKind::Vectorized, l, idx(lanes),
                         {store(y, {Expr(r), Expr(l)}, load(x, {Expr(r), Expr(l)}) * int_imm(2, kInt32))});
  return function("main", {x, y},
                  one_block({for_loop(kind, std::vector<VarRef>{r}, {idx(0)}, {idx(4)}, body, 1, {}, scheduled)}));
}

TEST(RollLoops, RollsLoopsAroundWideVectors) {
  expect_prints(roll_loops, rows(LoopKind::Serial, 32), R"(
@T.prim_func
def main(X: T.Tensor((4, 32), "int32"), Y: T.Tensor((4, 32), "int32")):
    with T.Kernel(1) as bx:
        for r in T.serial(4, rolled=True):
            for l in T.vectorized(32):
                Y[r, l] = X[r, l] * 2
)");
  expect_same_results(roll_loops, rows(LoopKind::Serial, 32));
  const std::string text = print(roll_loops(rows(LoopKind::Parallel, 64), {}));
  EXPECT_NE(text.find("T.Parallel(4, rolled=True)"), std::string::npos) << text;
}

TEST(RollLoops, LeavesOthers) {
  expect_untouched(roll_loops, rows(LoopKind::Serial, 16));
  expect_untouched(roll_loops, rows(LoopKind::Unroll, 32));
  expect_untouched(roll_loops, rows(LoopKind::Serial, 32, true));
}

TEST(RollLoops, IsDecidedAnew) {
  const FunctionRef f = rows(LoopKind::Serial, 32);
  EXPECT_TRUE(structural_equal(without_code_hints(roll_loops(f, {})), f));
  EXPECT_EQ(without_code_hints(f), f);
}

}  // namespace
}  // namespace helve::testing
