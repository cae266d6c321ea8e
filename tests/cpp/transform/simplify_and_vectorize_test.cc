// Simplification of functions, and vectors.
#include <algorithm>

#include "run_pass.h"

namespace helve::testing {
namespace {

Expr at_least(const Expr& a, const Expr& b) { return apply(Op::Ge, {a, b}); }

TEST(SimplifyFunction, DecidedLoopsAndBranchesDisappear) {
  const BufferRef out = param("out", kFloat32, {4, 8});
  const VarRef t = make_var("t"), i = make_var("i"), z = make_var("z");
  const Stmt inner = if_then(less(Expr(t), idx(4)), store(out, {floor_div(Expr(t) * idx(32) + i, idx(32)), i}, f32(1)),
                             store(out, {idx(0), i}, f32(2)));
  const FunctionRef before =
      function("main", {out},
               one_block({loop(LoopKind::Serial, t, idx(1), {loop(LoopKind::Parallel, i, idx(8), {inner})}),
                          loop(LoopKind::Serial, z, idx(0), {store(out, {z, z}, f32(3))}),
                          if_then(at_least(idx(1), idx(2)), store(out, {idx(0), idx(0)}, f32(4)))}));
  const VarRef k = make_var("i");
  const FunctionRef after =
      function("main", {out}, one_block({loop(LoopKind::Parallel, k, idx(8), {store(out, {idx(0), k}, f32(1))})}));
  expect_becomes(simplify_function, before, after);
  expect_untouched(simplify_function, after);
}

TEST(SimplifyFunction, AccessesThatAreFaultsDisappear) {
  const BufferRef out = param("out", kFloat32, {4}), a = param("A", kFloat32, {4});
  const VarRef n = make_var("n"), t = make_var("t");
  // Where n is positive the subscripts are constants outside, so n never is.
  const Expr below = floor_div(Expr(t), idx(-4)) - idx(1), past = Expr(t) + idx(4);
  const auto body = [&](const Stmt& inside) {
    return function("main", {out, a, n},
                    one_block({if_then(less(idx(0), Expr(n)), inside), store(out, {idx(0)}, f32(1))}));
  };
  const FunctionRef after = function("main", {out, a, n}, one_block({store(out, {idx(0)}, f32(1))}));
  expect_becomes(simplify_function, body(loop(LoopKind::Serial, t, idx(1), {store(out, {below}, f32(2))})), after);
  expect_becomes(simplify_function, body(loop(LoopKind::Serial, t, idx(1), {store(out, {past}, f32(2))})), after);
  const auto loads = [&](const Expr& value) {
    return body(loop(LoopKind::Serial, t, idx(1), {store(out, {idx(1)}, value)}));
  };
  expect_becomes(simplify_function, loads(select(less(idx(5), Expr(n)), load(a, {past}), f32(3))),
                 body(store(out, {idx(1)}, select(less(idx(5), Expr(n)), f32(0), f32(3)))));
  expect_untouched(simplify_function, after);
}

TEST(SimplifyFunction, LoopsWithEffectsStay) {
  const BufferRef out = param("out", kInt32, {1});
  const VarRef n = make_var("n"), t = make_var("t"), k = make_var("k");
  const BufferRef a = make_buffer("A", kInt32, MemoryScope::Param, {Expr(n)});
  const Stmt count = store(out, {idx(0)}, load(out, {idx(0)}) + int_imm(1, kInt32));
  const FunctionRef f = dynamic_function("main", {n}, {out, a},
                                         one_block({loop(LoopKind::Serial, t, Expr(n) - idx(3), {count}),
                                                    loop(LoopKind::Serial, k, min(Expr(n), idx(1)), {count})}));
  for (int64_t extent : {0, 1, 3, 5}) expect_same_results(simplify_function, f, {}, {{n.get(), extent}});
}

TEST(SimplifyFunction, APersistentLoopOfOneIterationRunsOnOneBlock) {
  const BufferRef out = param("out", kInt32, {1});
  const VarRef p = make_var("p"), b = make_var("b");
  const Stmt count = store(out, {idx(0)}, load(out, {idx(0)}) + int_imm(1, kInt32));
  expect_untouched(simplify_function,
                   function("main", {out}, kernel({b}, {idx(4)}, 128, loop(LoopKind::Persistent, p, idx(1), {count}))));
}

TEST(SimplifyFunction, AConditionOnMemoryIsNoFactAfterAStore) {
  const BufferRef out = param("out", kInt32, {4}), s = shared("S", kInt32, {2});
  const VarRef t = make_var("t"), u = make_var("u");
  const auto set = [&](const BufferRef& b, int64_t at, int64_t v) { return store(b, {idx(at)}, int_imm(v, kInt32)); };
  const Expr zero = apply(Op::Eq, {load(s, {idx(0)}), int_imm(0, kInt32)});
  const Expr count = cast(load(s, {idx(1)}), kIndex);
  const Stmt shrink = seq({set(s, 1, 1), if_then(less(Expr(t), count), store(out, {Expr(t)}, int_imm(7, kInt32)))});
  const FunctionRef f =
      function("main", {out},
               one_block({alloc(s), set(s, 0, 0), set(s, 1, 3),
                          if_then(logical_and(zero, less(idx(0), idx(1))),
                                  seq({set(s, 0, 1), if_then(zero, set(out, 0, 5), set(out, 0, 6))})),
                          if_then(zero, set(out, 1, 5), seq({set(s, 0, 0), if_then(zero, set(out, 1, 8))})),
                          loop(LoopKind::Serial, t, count, {shrink})}));
  expect_same_results(simplify_function, f);
}

TEST(SimplifyFunction, WhileReadsItsConditionAgain) {
  const BufferRef out = param("out", kInt32, {3});
  const auto at = [](int64_t i) { return std::vector<Expr>{idx(i)}; };
  const Expr below = less(load(out, at(0)), int_imm(6, kInt32));
  const Stmt step = seq({store(out, at(0), load(out, at(0)) + int_imm(2, kInt32)),
                         if_then(below, store(out, at(1), int_imm(1, kInt32)), store(out, at(2), int_imm(1, kInt32)))});
  expect_same_on_all_stages(function("main", {out}, one_block({while_loop(below, step)})));
}

TEST(VectorizeLoops, WholeVectorsAndATail) {
  const VarRef n = make_var("n"), j = make_var("j");
  const BufferRef x = make_buffer("X", kFloat32, MemoryScope::Param, {Expr(n)}),
                  y = make_buffer("Y", kFloat32, MemoryScope::Param, {Expr(n)});
  const FunctionRef f = dynamic_function(
      "main", {n}, {x, y}, one_block({loop(LoopKind::Parallel, j, Expr(n), {store(y, {j}, load(x, {j}) * f32(2))})}));
  expect_prints(vectorize_loops, f, R"(
n = T.dyn("n")

@T.prim_func
def main(X: T.Tensor((n,), "float32"), Y: T.Tensor((n,), "float32")):
    with T.Kernel(1) as bx:
        for v in T.serial(n // 32):
            for l in T.vectorized(32):
                Y[v * 32 + l] = X[v * 32 + l] * 2.0
        for v_1 in T.serial(n // 8 % 4):
            for l_1 in T.vectorized(8):
                Y[n // 32 * 32 + v_1 * 8 + l_1] = X[n // 32 * 32 + v_1 * 8 + l_1] * 2.0
        for l_2 in T.serial(n % 32 - n // 8 % 4 * 8):
            Y[n // 32 * 32 + n // 8 % 4 * 8 + l_2] = X[n // 32 * 32 + n // 8 % 4 * 8 + l_2] * 2.0
)");
  for (int64_t extent : {0, 1, 7, 8, 9, 33, 75}) expect_same_results(vectorize_loops, f, {}, {{n.get(), extent}});
}

/// One parallel loop over j in [begin, begin + extent) around `body`, with X, Y (64) and Z (4, 64).
struct Vectors {
  BufferRef x = param("X", kFloat32, {64}), y = param("Y", kFloat32, {64}), z = param("Z", kFloat32, {4, 64});
  VarRef j = make_var("j");
  FunctionRef make(const std::vector<Stmt>& body, int64_t extent = 32, int64_t begin = 0) const {
    return function("main", {x, y, z},
                    one_block({for_loop(LoopKind::Parallel, {j}, {idx(begin)}, {idx(extent)}, seq(body))}));
  }
};

/// The widest vector of the result, 0 where there is none.
int64_t lanes(const FunctionRef& f, int64_t bytes = 32) {
  PassOptions options;
  options.machine.vector_bytes = bytes;
  int64_t found = 0;
  walk(vectorize_loops(f, options)->body, [&](const Stmt& s) {
    const For* l = as<For>(s);
    if (l && l->loop == LoopKind::Vectorized) found = std::max(found, *int_value(l->extents[0]));
  });
  return found;
}

TEST(VectorizeLoops, LanesFillFourRegistersOfTheWidestElement) {
  const Vectors v;
  const FunctionRef f = v.make({store(v.y, {v.j}, load(v.x, {v.j}))});
  EXPECT_EQ(lanes(f, 16), 16);
  EXPECT_EQ(lanes(f, 64), 32) << "no more than the loop has";
  EXPECT_EQ(lanes(v.make({store(v.y, {v.j}, load(v.x, {v.j}))}, 3)), 2);
  EXPECT_EQ(lanes(v.make({store(v.y, {v.j}, load(v.x, {v.j}))}, 1)), 0);
  const DType half{TypeCode::Float, 16};
  for (DType t : {DType{TypeCode::Int, 8}, kInt32, half, kFloat64}) {
    const BufferRef x = param("X", t, {64}), y = param("Y", t, {64});
    const VarRef j = make_var("j");
    const FunctionRef g =
        function("main", {x, y},
                 one_block({loop(LoopKind::Parallel, j, idx(64), {store(y, {j}, load(x, {j}) + load(x, {j}))})}));
    EXPECT_EQ(lanes(g), std::min<int64_t>(64, 4 * 32 / (t == half ? 4 : t.bytes())))
        << to_string(t);  // small floats are evaluated in 32 bits
  }
}

TEST(VectorizeLoops, OnlyContiguousAccesses) {
  const Vectors v;
  const VarRef t = make_var("t");
  const Expr j = Expr(v.j);
  EXPECT_EQ(lanes(v.make({store(v.y, {j}, load(v.x, {idx(5)}))})), 32) << "an invariant read";
  EXPECT_EQ(lanes(v.make({store(v.z, {idx(1), j + idx(3)}, load(v.x, {idx(2) + j}))})), 32) << "an offset";
  EXPECT_EQ(lanes(v.make({bind(t, j + idx(3)), store(v.y, {Expr(t)}, load(v.x, {j}))})), 32) << "through a name";
  EXPECT_EQ(lanes(v.make({bind(t, j + idx(3)), store(v.y, {j}, load(v.x, {Expr(t)}))})), 32) << "through a name";
  for (const FunctionRef& f :
       {v.make({store(v.y, {j * idx(2)}, f32(1))}), v.make({store(v.y, {j}, load(v.x, {j * idx(2)}))}),
        v.make({store(v.z, {floor_mod(j, idx(4)), j}, f32(1))}, 4), v.make({store(v.y, {idx(31) - j}, f32(1))}),
        v.make({bind(t, j * idx(2)), store(v.y, {j}, load(v.x, {Expr(t)}))}),
        v.make({bind(t, j), store(v.y, {j + Expr(t)}, f32(1))}),
        v.make({bind(t, j), store(v.z, {Expr(t), j}, f32(1))}, 4),
        v.make({if_then(less(j, idx(3)), store(v.y, {j}, f32(1)))})}) {
    expect_untouched(vectorize_loops, f);
  }
}

TEST(VectorizeLoops, PairsOfIterationsReadOneElement) {
  const Vectors v;
  const Expr j = v.j;
  const auto read = [&](const Expr& at, int64_t extent = 32, int64_t begin = 0) {
    return v.make({store(v.y, {j}, load(v.x, {at}))}, extent, begin);
  };
  expect_prints(vectorize_loops, read(floor_div(j + idx(1), idx(2)), 17), R"(
@T.prim_func
def main(X: T.Tensor((64,), "float32"), Y: T.Tensor((64,), "float32"), Z: T.Tensor((4, 64), "float32")):
    with T.Kernel(1) as bx:
        for j in T.serial(1):
            Y[j] = X[(j + 1) // 2]
        for v in T.serial(1):
            for l in T.vectorized(16):
                Y[v * 16 + l + 1] = X[1 + (v * 16 + l) // 2]
)");
  for (int64_t extent : {2, 3, 17, 31}) {
    for (int64_t begin : {0, 1, 6}) {
      for (int64_t offset : {0, 1, 2, 7}) {
        const FunctionRef f = read(floor_div(j + idx(offset), idx(2)) + idx(3), extent, begin);
        expect_same_results(vectorize_loops, f);
      }
    }
  }
  const VarRef t = make_var("t");
  EXPECT_EQ(lanes(read(floor_div(j + idx(4), idx(2)))), 32);
  EXPECT_EQ(lanes(v.make({bind(t, j + idx(3)), store(v.y, {j}, load(v.x, {floor_div(Expr(t), idx(2))}))})), 16)
      << "through a name, after a head";
  const auto two = [&](int64_t second) {
    return v.make(
        {store(v.y, {j}, load(v.x, {floor_div(j, idx(2))}) + load(v.x, {floor_div(j + idx(second), idx(2))}))});
  };
  EXPECT_EQ(lanes(two(6)), 32);
  for (const FunctionRef& f :
       {two(1), read(floor_div(idx(31) - j, idx(2))), read(floor_div(j * idx(3), idx(2))), read(floor_div(j, idx(3))),
        read(floor_div(j, idx(2)) + j), read(floor_div(floor_mod(j, idx(5)), idx(2))),
        read(floor_div(j + cast(load(v.z, {idx(0), idx(0)}), kIndex), idx(2))),
        v.make({store(v.y, {floor_div(j, idx(2))}, f32(1))})}) {
    expect_untouched(vectorize_loops, f);
  }
}

TEST(VectorizeLoops, WhereThePairsBeginMayBeKnownAtTheCallOnly) {
  const VarRef n = make_var("n"), o = make_var("o"), j = make_var("j");
  const BufferRef x = param("X", kFloat32, {80}), y = make_buffer("Y", kFloat32, MemoryScope::Param, {Expr(n)});
  const BufferRef where = make_buffer("O", kFloat32, MemoryScope::Param, {Expr(o)});
  const Expr value = load(x, {floor_div(Expr(j) + o, idx(2))}) + cast(floor_mod(Expr(j) + o, idx(2)), kFloat32);
  const FunctionRef f = dynamic_function("main", {n, o}, {x, y, where},
                                         one_block({loop(LoopKind::Parallel, j, Expr(n), {store(y, {j}, value)})}));
  EXPECT_EQ(lanes(f), 32);
  for (int64_t extent : {0, 1, 2, 33, 75}) {
    for (int64_t offset : {0, 1, 6, 11}) {
      expect_same_results(vectorize_loops, f, {}, {{n.get(), extent}, {o.get(), offset}});
    }
  }
}

TEST(VectorizeLoops, ReductionsAndDeclaredStridesStayScalar) {
  const Vectors v;
  expect_untouched(vectorize_loops, v.make({store(v.y, {idx(0)}, load(v.y, {idx(0)}) + load(v.x, {v.j}))}));
  const VarRef j = make_var("j"), k = make_var("j");
  const BufferRef strided = make_buffer("S", kFloat32, MemoryScope::Param, extents({32}), {}, extents({2}));
  const BufferRef unit = make_buffer("U", kFloat32, MemoryScope::Param, extents({32}), {}, extents({1}));
  expect_untouched(
      vectorize_loops,
      function("main", {strided}, one_block({loop(LoopKind::Parallel, j, idx(32), {store(strided, {j}, f32(1))})})));
  EXPECT_EQ(
      lanes(function("main", {unit}, one_block({loop(LoopKind::Parallel, k, idx(32), {store(unit, {k}, f32(1))})}))),
      32);
}

TEST(VectorizeLoops, BeginsAndOuterVariablesKeepTheirValues) {
  const Vectors v;
  for (int64_t extent : {1, 2, 8, 11, 30}) {
    expect_same_results(vectorize_loops,
                        v.make({store(v.y, {v.j}, load(v.x, {v.j}) + cast(Expr(v.j), kFloat32))}, extent, 5));
  }
  const VarRef i = make_var("i"), j = make_var("j");
  const FunctionRef f = function("main", {v.z},
                                 one_block({for_loop(LoopKind::Parallel, {i, j}, {idx(1), idx(3)}, {idx(2), idx(19)},
                                                     store(v.z, {i, j}, cast(Expr(i) * idx(100) + j, kFloat32)))}));
  EXPECT_GT(lanes(f), 1);
  expect_same_results(vectorize_loops, f);
}

TEST(VectorizeLoops, ANegativeExtentRunsNothing) {
  const VarRef n = make_var("n"), j = make_var("j");
  const BufferRef x = make_buffer("X", kFloat32, MemoryScope::Param, {Expr(n)}), y = param("Y", kFloat32, {48});
  const FunctionRef f = dynamic_function(
      "main", {n}, {x, y},
      one_block({loop(LoopKind::Parallel, j, Expr(n) - idx(13), {store(y, {Expr(j) + idx(8)}, f32(99))})}));
  EXPECT_GT(lanes(f), 1);
  for (int64_t extent : {0, 2, 8, 13, 14, 30, 45}) expect_same_results(vectorize_loops, f, {}, {{n.get(), extent}});
}

}  // namespace
}  // namespace helve::testing
