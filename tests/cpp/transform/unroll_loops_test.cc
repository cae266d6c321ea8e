// Copies of a loop's body in the order of its iterations.
#include "run_pass.h"

namespace helve::testing {
namespace {

/// Y[begin + u * rows + r] = X[...] + 1 through memory of the innermost iteration.
FunctionRef nest(int64_t outer, int64_t inner, int64_t begin = 0) {
  const BufferRef x = param("X", kInt32, {outer * inner + begin}), y = param("Y", kInt32, {outer * inner + begin});
  const BufferRef own = make_buffer("own", kInt32, MemoryScope::Local, {idx(1)});
  const VarRef u = make_var("u"), r = make_var("r");
  const Expr at = Expr(u) * idx(inner) + Expr(r);
  const Stmt body =
      seq({alloc(own), store(own, {idx(0)}, load(x, {at}) + int_imm(1, kInt32)), store(y, {at}, load(own, {idx(0)}))});
  const Stmt rows = for_loop(LoopKind::Unroll, std::vector<VarRef>{r}, {idx(begin)}, {idx(inner)}, body);
  return function("main", {x, y}, one_block({for_loop(LoopKind::Unroll, u, idx(outer), rows)}));
}

TEST(UnrollLoops, CopiesTheBody) {
  expect_prints(unroll_loops, nest(1, 2, 3), R"(
@T.prim_func
def main(X: T.Tensor((5,), "int32"), Y: T.Tensor((5,), "int32")):
    with T.Kernel(1) as bx:
        own = T.alloc_local((1,), "int32")
        own[0] = X[3] + 1
        Y[3] = own[0]
        own_1 = T.alloc_local((1,), "int32")
        own_1[0] = X[4] + 1
        Y[4] = own_1[0]
)");
}

TEST(UnrollLoops, ComputesTheSame) {
  for (const auto& [outer, inner] : {std::pair<int64_t, int64_t>{1, 1}, {3, 4}, {64, 16}, {64, 17}, {65, 2}, {5, 0}}) {
    expect_same_results(unroll_loops, nest(outer, inner, 1));
  }
}

TEST(UnrollLoops, LeavesWhatWouldBeTooMuchCode) {
  const auto loops = [](const FunctionRef& f) {
    size_t count = 0;
    walk(unroll_loops(f, {})->body, [&](const Stmt& s) { count += s->kind == StmtKind::For; });
    return count;
  };
  EXPECT_EQ(loops(nest(64, 16)), 0u);
  EXPECT_EQ(loops(nest(65, 2)), 1u);
  EXPECT_EQ(loops(nest(64, 17)), 64u);  // the inner ones
}

}  // namespace
}  // namespace helve::testing
