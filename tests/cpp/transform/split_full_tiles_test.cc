// Tiles of a schedule that need no guard get code without one; loops of the others end where their guards do.
#include "run_pass.h"

namespace helve::testing {
namespace {

/// Y[v, i] = 1 where the condition holds, for i = io * step + ii; rows v are a loop between the two.
struct Tiles {
  VarRef n = make_var("n"), io = make_var("io"), v = make_var("v"), ii = make_var("ii");
  BufferRef x = make_buffer("X", kFloat32, MemoryScope::Param, {Expr(n)}),
            y = make_buffer("Y", kFloat32, MemoryScope::Param, {idx(3), idx(64)});

  FunctionRef make(const Expr& condition, int64_t outer, int64_t step, bool scheduled = true) const {
    const Stmt body = if_then(condition, store(y, {Expr(v), Expr(io) * idx(step) + Expr(ii)}, f32(1)));
    const auto loop = [&](LoopKind kind, const VarRef& var, int64_t extent, const Stmt& inner) {
      return for_loop(kind, std::vector<VarRef>{var}, {idx(0)}, {idx(extent)}, inner, 1, {}, scheduled);
    };
    const Stmt tile = loop(LoopKind::Serial, v, 3, loop(LoopKind::Vectorized, ii, step, body));
    return dynamic_function("main", {n}, {x, y}, kernel({}, {}, 32, loop(LoopKind::Serial, io, outer, tile)));
  }
  Expr at(int64_t step) const { return Expr(io) * idx(step) + Expr(ii); }
};

FunctionRef both(const FunctionRef& f, const PassOptions& options) {
  return trim_loops(split_full_tiles(f, options), options);
}

TEST(SplitFullTiles, FullTilesHaveNoGuardAndTheLastIsAsLongAsItsGuardSays) {
  const Tiles c;
  expect_prints(both, c.make(less(c.at(8), idx(28)), 4, 8), R"(
n = T.dyn("n")

@T.prim_func
def main(X: T.Tensor((n,), "float32"), Y: T.Tensor((3, 64), "float32")):
    with T.Kernel(threads=32) as ():
        for io in T.serial(4, scheduled=True):
            if io < 3:
                for v in T.serial(3, scheduled=True):
                    for ii in T.vectorized(8, scheduled=True):
                        Y[v, io * 8 + ii] = 1.0
            else:
                for v_1 in T.serial(3, scheduled=True):
                    for ii_1 in T.vectorized(4, scheduled=True):
                        Y[v_1, ii_1 + 24] = 1.0
)");
}

TEST(SplitFullTiles, EveryGuardComputesWhatItDid) {
  const Tiles c;
  const Expr n(c.n);
  for (Op op : {Op::Lt, Op::Le, Op::Gt, Op::Ge, Op::Eq, Op::Ne}) {
    for (int64_t sign : {1, -1}) {
      for (const Expr& limit : {idx(-9), idx(-1), idx(0), idx(1), idx(7), idx(13), idx(16), idx(40), n, n * idx(2)}) {
        for (const Expr& value : {c.at(5), c.at(5) - Expr(c.v), Expr(c.io) * idx(10) + Expr(c.ii) * idx(2)}) {
          const Expr guard = apply(op, {value * idx(sign), limit});
          for (const Expr& condition : {guard, logical_and(guard, less(Expr(c.v), n))}) {
            const FunctionRef f = c.make(condition, 4, 5);
            for (int64_t extent : {0, 1, 7, 30}) expect_same_results(both, f, {}, {{c.n.get(), extent}});
          }
        }
      }
    }
  }
}

TEST(SplitFullTiles, ALoopEndsWhereAGuardOfAllThatItDoesSays) {
  const Tiles c;
  const Expr v(c.v), n(c.n);
  const auto guarded = [&](const Expr& condition) { return c.make(logical_and(condition, less(Expr(c.ii), n)), 4, 8); };
  expect_prints(trim_loops, guarded(less(Expr(c.io) * idx(2) + v, n)), R"(
n = T.dyn("n")

@T.prim_func
def main(X: T.Tensor((n,), "float32"), Y: T.Tensor((3, 64), "float32")):
    with T.Kernel(threads=32) as ():
        for io in T.serial(4, scheduled=True):
            for v in T.serial(T.max(T.min(n - io * 2, 3), 0), scheduled=True):
                for ii in T.vectorized(8, scheduled=True):
                    if ii < n:
                        Y[v, io * 8 + ii] = 1.0
)");
  for (Op op : {Op::Lt, Op::Le, Op::Gt, Op::Ge}) {
    for (int64_t sign : {1, -1}) {
      for (const Expr& value : {v, v * idx(2) + Expr(c.io), v * idx(3) - n, v - Expr(c.io) * idx(2), v + Expr(c.ii)}) {
        for (const Expr& limit : {idx(-2), idx(0), idx(3), n, n * idx(2) - idx(7)}) {
          const FunctionRef f = guarded(apply(op, {value * idx(sign), limit}));
          for (int64_t extent : {0, 1, 2, 3, 9}) expect_same_results(trim_loops, f, {}, {{c.n.get(), extent}});
        }
      }
    }
  }
}

TEST(SplitFullTiles, ALoopWhoseStatementsEndAtOtherPlacesStays) {
  const Tiles c;
  const Expr v(c.v), n(c.n);
  const auto body = [&](const Stmt& inner) {
    const Stmt rows = for_loop(LoopKind::Serial, std::vector<VarRef>{c.v}, {idx(0)}, {idx(3)}, inner, 1, {}, true);
    return dynamic_function("main", {c.n}, {c.x, c.y}, kernel({}, {}, 32, rows));
  };
  const Stmt one = store(c.y, {v, idx(0)}, f32(1)), other = store(c.y, {v, idx(1)}, f32(2));
  expect_untouched(trim_loops, body(seq({if_then(less(v, n), one), if_then(less(v, n + idx(1)), other)})));
  expect_untouched(trim_loops, body(seq({if_then(less(v, n), one), other})));
  expect_untouched(trim_loops, body(if_then(less(v, n), one, other)));
  const FunctionRef both_end = body(seq({if_then(less(v, n), one), if_then(less(v, n), other)}));
  EXPECT_NE(trim_loops(both_end, {}), both_end);
  for (int64_t extent : {0, 1, 3, 4}) expect_same_results(trim_loops, both_end, {}, {{c.n.get(), extent}});
}

TEST(SplitFullTiles, LeastAndGreatestOfIndicesAreCutOnlyAlone) {
  const Tiles c;
  const Expr least = max(min(Expr(c.io) * idx(8) + idx(7), idx(27)) - Expr(c.io) * idx(8) + idx(1), idx(0));
  const auto conditions = [&](const Expr& condition) {
    size_t all = 0;
    walk(split_full_tiles(c.make(condition, 4, 8), {})->body, [&](const Stmt& s) {
      const If* branch = as<If>(s);
      if (branch && !mentions(branch->condition, c.ii.get())) ++all;
    });
    return all;
  };
  EXPECT_EQ(conditions(logical_and(less(c.at(8), idx(28)), less(Expr(c.ii), least))), 1u);
  EXPECT_GT(conditions(less(Expr(c.ii), least)), 0u);
}

TEST(SplitFullTiles, WhatNoScheduleMadeStays) {
  const Tiles c;
  expect_untouched(split_full_tiles, c.make(less(c.at(8), idx(28)), 4, 8, false));
  expect_untouched(trim_loops, c.make(less(Expr(c.ii), idx(4)), 4, 8, false));
}

TEST(SplitFullTiles, GuardsThatReadMemoryStay) {
  const Tiles c;
  const BufferRef y = c.y;
  const Expr reads = apply(Op::Lt, {load(y, {idx(0), Expr(c.ii)}), f32(1)});
  expect_untouched(split_full_tiles, c.make(reads, 4, 8));
  expect_untouched(trim_loops, c.make(logical_and(reads, less(Expr(c.ii), idx(4))), 4, 8));
}

TEST(SplitFullTiles, ALoopThatDoesNothingGoes) {
  const Tiles c;
  const FunctionRef f = c.make(less(c.at(8), idx(-5)), 4, 8);
  size_t loops = 0;
  walk(both(f, {})->body, [&](const Stmt& s) { loops += s->kind == StmtKind::For; });
  EXPECT_EQ(loops, 0u);
}

}  // namespace
}  // namespace helve::testing
