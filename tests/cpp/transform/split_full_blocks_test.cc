// Blocks without a tail get code of their own; every size computes what it did.
#include "run_pass.h"

namespace helve::testing {
namespace {

/// Y = X + 1 in blocks of 4, through a buffer of the block that is padded with 7.
struct Blocks {
  VarRef n = make_var("n"), b = make_var("b"), left = make_var("n0");
  BufferRef x = make_buffer("X", kFloat32, MemoryScope::Param, {Expr(n)}),
            y = make_buffer("Y", kFloat32, MemoryScope::Param, {Expr(n)});
  BufferRef s = shared("s", kFloat32, {4});

  Stmt loop(LoopKind kind, const Expr& extent, const std::function<Stmt(const Expr&)>& body) const {
    const VarRef i = make_var("i");
    return for_loop(kind, i, extent, body(Expr(i)));
  }
  FunctionRef make(LoopKind kind = LoopKind::Parallel, const Expr& within = {}) const {
    const Expr rest = Expr(n) - Expr(b) * idx(4);
    std::vector<Stmt> body = {
        alloc(s),
        bind(left, min(within ? within : rest, idx(4))),
        if_then(less(Expr(left), idx(4)),
                loop(LoopKind::Parallel, idx(4), [&](const Expr& i) { return store(s, {i}, f32(7)); })),
        loop(kind, left, [&](const Expr& i) { return store(s, {i}, load(x, {Expr(b) * idx(4) + i})); }),
        loop(LoopKind::Parallel, idx(4), [&](const Expr& i) { return store(s, {i}, load(s, {i}) + f32(1)); }),
        loop(kind, min(rest, idx(4)), [&](const Expr& i) { return store(y, {Expr(b) * idx(4) + i}, load(s, {i})); })};
    return dynamic_function("main", {n}, {x, y}, kernel({b}, {ceil_div(Expr(n), idx(4))}, 128, seq(std::move(body))));
  }
};

TEST(SplitFullBlocks, TheFullBlockHasNoTail) {
  const Blocks blocks;
  const FunctionRef f = blocks.make();
  const auto both = [](const FunctionRef& g, const PassOptions& options) {
    return simplify_function(split_full_blocks(g, options), options);
  };
  expect_prints(both, f, R"(
n = T.dyn("n")

@T.prim_func
def main(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
    with T.Kernel((n + 3) // 4) as b:
        if b * 4 < n - 3:
            s = T.alloc_shared((4,), "float32")
            n0 = T.index(4)
            for i in T.Parallel(4):
                s[i] = X[b * 4 + i]
            for i_1 in T.Parallel(4):
                s[i_1] = s[i_1] + 1.0
            for i_2 in T.Parallel(4):
                Y[b * 4 + i_2] = s[i_2]
        else:
            s_1 = T.alloc_shared((4,), "float32")
            n0_1 = n - b * 4
            if n0_1 < 4:
                for i_3 in T.Parallel(4):
                    s_1[i_3] = 7.0
            for i_4 in T.Parallel(n0_1):
                s_1[i_4] = X[b * 4 + i_4]
            for i_5 in T.Parallel(4):
                s_1[i_5] = s_1[i_5] + 1.0
            for i_6 in T.Parallel(n - b * 4):
                Y[b * 4 + i_6] = s_1[i_6]
)");
  for (int64_t extent : {0, 1, 3, 4, 5, 8, 11}) {
    expect_same_results(both, f, {}, {{blocks.n.get(), extent}});
    expect_same_on_all_stages(f, {}, {{blocks.n.get(), extent}});
  }
}

TEST(SplitFullBlocks, OnlyOnceAndOnlyWhereItIsKnownBefore) {
  const Blocks blocks;
  const FunctionRef once = simplify_function(split_full_blocks(blocks.make(), {}), {});
  EXPECT_EQ(split_full_blocks(once, {}), once) << "split already";
  expect_untouched(split_full_blocks, blocks.make(LoopKind::Unroll));
  // The extent of an inner loop depends on an outer one: no condition of the block.
  const BufferRef out = param("out", kFloat32, {10});
  const VarRef t = make_var("t"), i = make_var("i");
  const Stmt tile = for_loop(LoopKind::Parallel, i, min(idx(10) - Expr(t) * idx(4), idx(4)),
                             store(out, {Expr(t) * idx(4) + i}, f32(1)));
  expect_untouched(split_full_blocks, function("main", {out}, one_block({serial(t, idx(3), {tile})})));
}

TEST(SplitFullBlocks, AMinimumThatIsReadFromMemoryIsNoCondition) {
  const BufferRef count = param("count", kInt32, {1}), out = param("out", kFloat32, {4});
  const VarRef i = make_var("i");
  const Stmt body =
      for_loop(LoopKind::Serial, i, min(cast(load(count, {idx(0)}), kIndex), idx(4)), store(out, {Expr(i)}, f32(1)));
  expect_untouched(split_full_blocks, function("main", {count, out}, one_block({body})));
}

}  // namespace
}  // namespace helve::testing
