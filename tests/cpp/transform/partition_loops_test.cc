// Loops are cut where conditions on their variable turn; every form of a condition computes what it did.
#include "run_pass.h"

namespace helve::testing {
namespace {

/// Y[v] = 1 where the condition on v holds, else 2, for v of a loop from `begin`; n is dynamic and outside of the loop.
struct Choice {
  VarRef n = make_var("n"), v = make_var("v"), tx = make_var("tx");
  BufferRef x = make_buffer("X", kFloat32, MemoryScope::Param, {Expr(n)}),
            y = make_buffer("Y", kFloat32, MemoryScope::Param, {idx(32 * 12)});

  FunctionRef make(const Expr& condition, const Expr& extent, int64_t begin = 0,
                   LoopKind kind = LoopKind::Unroll) const {
    const Expr at = Expr(tx) * idx(12) + Expr(v);
    const Stmt body = if_then(condition, store(y, {at}, f32(1)), store(y, {at}, f32(2)));
    const Stmt loop = for_loop(kind, {v}, {idx(begin)}, {extent}, body);
    const Stmt thread = for_loop(LoopKind::Thread, tx, idx(32), loop);
    return dynamic_function("main", {n}, {x, y}, kernel({}, {}, 32, thread));
  }
};

TEST(PartitionLoops, ThePartsHaveNoConditionOnTheVariable) {
  const Choice c;
  const Expr guard = logical_and(less(Expr(c.tx), Expr(c.n)), less(Expr(c.v), idx(1)));
  expect_prints(partition_loops, c.make(guard, idx(4)), R"(
n = T.dyn("n")

@T.prim_func
def main(X: T.Tensor((n,), "float32"), Y: T.Tensor((384,), "float32")):
    with T.Kernel(threads=32) as ():
        for tx in T.threads(32):
            if tx < n:
                Y[tx * 12] = 1.0
            else:
                Y[tx * 12] = 2.0
            for v in T.unroll(3):
                Y[tx * 12 + v + 1] = 2.0
)");
}

TEST(PartitionLoops, EveryConditionComputesWhatItDid) {
  const Choice c;
  const Expr v(c.v), n(c.n), tx(c.tx);
  std::vector<Expr> conditions;
  for (Op op : {Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne}) {
    for (int64_t step : {-3, -1, 1, 2}) {
      for (int64_t limit : {-4, -1, 0, 1, 2, 3, 7}) {
        const Expr value = v * idx(step);
        conditions.push_back(apply(op, {value, idx(limit)}));
        conditions.push_back(apply(op, {value + floor_mod(tx, idx(2)), idx(limit)}));
        conditions.push_back(logical_and(less(tx, n), apply(op, {value, idx(limit)})));
      }
    }
  }
  conditions.push_back(apply(Op::Eq, {floor_mod(v, idx(2)), idx(0)}));
  for (const Expr& condition : conditions) {
    for (int64_t begin : {0, 2}) {
      for (const Expr& extent : {idx(1), idx(5), n}) {
        const FunctionRef f = c.make(condition, extent, begin, LoopKind::Serial);
        for (int64_t value : {0, 1, 3, 9}) expect_same_results(partition_loops, f, {}, {{c.n.get(), value}});
      }
    }
  }
}

TEST(PartitionLoops, AnExtentThatTheBodyChangesIsReadOnce) {
  const VarRef v = make_var("v"), tx = make_var("tx");
  const BufferRef y = make_buffer("Y", kFloat32, MemoryScope::Param, {idx(32 * 6)});
  const BufferRef count = make_buffer("count", kInt32, MemoryScope::Local, {idx(1)});
  const Stmt body = if_then(less(Expr(v), idx(1)), store(count, {idx(0)}, int_imm(2, kInt32)),
                            store(y, {Expr(tx) * idx(6) + Expr(v)}, f32(1)));
  const Stmt loop = for_loop(LoopKind::Serial, {v}, {idx(0)}, {cast(load(count, {idx(0)}), kIndex)}, body);
  const Stmt thread =
      for_loop(LoopKind::Thread, tx, idx(32), seq({alloc(count), store(count, {idx(0)}, int_imm(6, kInt32)), loop}));
  const FunctionRef f = function("main", {y}, kernel({}, {}, 32, thread));
  EXPECT_NE(partition_loops(f, {}), f);
  expect_same_results(partition_loops, f);
}

TEST(PartitionLoops, WhatNoIterationDecidesStays) {
  const Choice c;
  const Expr v(c.v), n(c.n);
  expect_untouched(partition_loops, c.make(less(v, n), idx(4)));
  expect_untouched(partition_loops, c.make(less(v + Expr(c.tx), n), idx(4)));
  expect_untouched(partition_loops, c.make(less(n, idx(1)), idx(4)));
  expect_untouched(partition_loops,
                   c.make(apply(Op::Eq, {floor_mod(v, idx(2)), idx(0)}), idx(100), 0, LoopKind::Serial));
}

}  // namespace
}  // namespace helve::testing
