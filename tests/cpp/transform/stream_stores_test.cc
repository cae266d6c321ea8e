// Stores around the caches: where they are, and that programs compute the same wherever tensors begin.
#include "run_pass.h"

namespace helve::testing {
namespace {

PassOptions streaming(int64_t bytes = 1) {
  PassOptions options;
  options.machine.store_line = 64;
  options.stream_bytes = bytes;
  return options;
}

/// Y[b, ...] = 2 X[b, ...] over rows of `columns`, in vectors of 64 and of 8 and a scalar rest.
FunctionRef doubling(int64_t rows, int64_t columns) {
  const VarRef b = make_var("b"), v = make_var("v"), l = make_var("l"), w = make_var("w"), m = make_var("m"),
               t = make_var("t");
  const BufferRef x = param("X", kFloat32, {rows, columns}), y = param("Y", kFloat32, {rows, columns});
  const auto at = [&](const Expr& c) { return store(y, {b, c}, load(x, {b, c}) + load(x, {b, c})); };
  const int64_t wide = columns / 64, rest = wide * 64, narrow = (columns - rest) / 8, last = rest + narrow * 8;
  const auto behind = [](const Expr& position, int64_t begin) { return begin ? position + idx(begin) : position; };
  const Stmt wide_lanes = for_loop(LoopKind::Vectorized, l, idx(64), at(Expr(v) * idx(64) + l));
  const Stmt narrow_lanes = for_loop(LoopKind::Vectorized, m, idx(8), at(behind(Expr(w) * idx(8) + m, rest)));
  std::vector<Stmt> body;
  if (wide > 0) body.push_back(for_loop(LoopKind::Serial, v, idx(wide), wide_lanes));
  if (narrow > 0) body.push_back(for_loop(LoopKind::Serial, w, idx(narrow), narrow_lanes));
  if (last < columns) body.push_back(for_loop(LoopKind::Serial, t, idx(columns - last), at(behind(Expr(t), last))));
  return function("main", {x, y}, kernel({b}, {idx(rows)}, 128, seq(body)));
}

TEST(StreamStores, WalksBeginAtLines) {
  expect_prints(stream_stores, doubling(2, 256), R"(
@T.prim_func
def main(X: T.Tensor((2, 256), "float32"), Y: T.Tensor((2, 256), "float32")):
    with T.Kernel(2) as b:
        skip = -(T.misalignment(Y, 64) // 4) % 16
        for v in T.serial(4 - T.min(skip, 1)):
            for l in T.vectorized(64):
                T.store_nontemporal(Y[b, v * 64 + l + skip], X[b, v * 64 + l + skip] + X[b, v * 64 + l + skip], 64)
        if 0 < skip:
            for w in T.serial(3):
                for l_1 in T.vectorized(16):
                    T.store_nontemporal(Y[b, w * 16 + l_1 + skip + 192], X[b, w * 16 + l_1 + skip + 192] + X[b, w * 16 + l_1 + skip + 192], 64)
            for end in T.serial(2):
                for l_2 in T.vectorized(16):
                    if 15 < end * 256 + l_2 + skip and end * 256 + l_2 + skip < 272:
                        Y[b, end * 256 + l_2 + skip - 16] = X[b, end * 256 + l_2 + skip - 16] + X[b, end * 256 + l_2 + skip - 16]
)",
                streaming());
}

TEST(StreamStores, PiecesWhereRowsLieWell) {
  expect_prints(stream_stores, doubling(2, 24), R"(
@T.prim_func
def main(X: T.Tensor((2, 24), "float32"), Y: T.Tensor((2, 24), "float32")):
    with T.Kernel(2) as b:
        if T.misalignment(Y, 16) == 0:
            for w in T.serial(3):
                for m in T.vectorized(8):
                    T.store_nontemporal(Y[b, w * 8 + m], X[b, w * 8 + m] + X[b, w * 8 + m], 16)
        else:
            for w_1 in T.serial(3):
                for m_1 in T.vectorized(8):
                    Y[b, w_1 * 8 + m_1] = X[b, w_1 * 8 + m_1] + X[b, w_1 * 8 + m_1]
)",
                streaming());
}

TEST(StreamStores, OnlyLargeTensors) {
  const FunctionRef f = doubling(2, 256);
  EXPECT_NE(stream_stores(f, streaming(2 * 256 * 4)), f);
  expect_untouched(stream_stores, f, streaming(2 * 256 * 4 + 1));
  expect_untouched(stream_stores, f, {});
}

/// Runs with many beginnings of tensors agree, and what stands in a piece begins at one.
void expect_same_anywhere(const FunctionRef& f) {
  const FunctionRef after = stream_stores(f, streaming());
  verify(after);
  EXPECT_NE(after, f);
  const Memory expected = interpret(f);
  for (int64_t placement = 0; placement < 20; ++placement) {
    interp::Options options;
    options.placement = placement;
    ASSERT_EQ(interpret(after, 1, {}, options), expected) << placement << "\n" << print(after);
  }
}

TEST(StreamStores, ComputeTheSameWhereverTensorsBegin) {
  for (int64_t columns : {64, 72, 127, 128, 157, 192, 1000, 4100}) expect_same_anywhere(doubling(3, columns));
}

TEST(StreamStores, TilesOfARowAreOneWalk) {
  const VarRef b = make_var("b"), c = make_var("c"), v = make_var("v"), l = make_var("l");
  const BufferRef x = param("X", kFloat32, {2, 240}), y = param("Y", kFloat32, {2, 240});
  const BufferRef first = make_buffer("s", kFloat32, MemoryScope::Local, {idx(16)}),
                  second = make_buffer("t", kFloat32, MemoryScope::Local, {idx(16)});
  const Expr at = (Expr(c) * idx(3) + Expr(v)) * idx(16) + l;
  const Stmt lanes = for_loop(LoopKind::Vectorized, l, idx(16),
                              seq({store(first, {l}, load(x, {b, at}) + load(x, {b, at})),
                                   store(second, {l}, load(first, {l}) + load(x, {b, at})),
                                   store(y, {b, at}, load(first, {l}) + load(second, {l}))}));
  const Stmt tiles = for_loop(LoopKind::Serial, c, idx(5),
                              for_loop(LoopKind::Serial, v, idx(3), seq({alloc(first), alloc(second), lanes})));
  const FunctionRef f = function("main", {x, y}, kernel({b}, {idx(2)}, 128, tiles));
  const std::string text = print(stream_stores(f, streaming()));
  EXPECT_NE(text.find("for v in T.serial(15 - T.min(skip, 1)):"), std::string::npos) << text;
  expect_same_anywhere(f);
}

TEST(PrefetchReads, TheSecondReadingAsksForTheNextBlock) {
  const VarRef b = make_var("b"), v = make_var("v"), l = make_var("l"), w = make_var("w"), m = make_var("m");
  const BufferRef x = param("X", kFloat32, {4, 64}), y = param("Y", kFloat32, {4, 64});
  const BufferRef s = shared("s", kFloat32, {64});
  const Expr at = Expr(v) * idx(8) + l, again = Expr(w) * idx(8) + m;
  const auto nest = [](const VarRef& outer, const VarRef& lane, const Stmt& body) {
    return for_loop(LoopKind::Serial, outer, idx(8), for_loop(LoopKind::Vectorized, lane, idx(8), body));
  };
  const FunctionRef f =
      function("main", {x, y},
               kernel({b}, {idx(4)}, 128,
                      seq({alloc(s), nest(v, l, store(s, {at}, load(x, {b, at}) + load(x, {b, at}))),
                           nest(w, m, store(y, {b, again}, load(x, {b, again}) * load(s, {again})))})));
  expect_prints(prefetch_reads, f, R"(
@T.prim_func
def main(X: T.Tensor((4, 64), "float32"), Y: T.Tensor((4, 64), "float32")):
    with T.Kernel(4) as b:
        s = T.alloc_shared((64,), "float32")
        for v in T.serial(8):
            for l in T.vectorized(8):
                s[v * 8 + l] = X[b, v * 8 + l] + X[b, v * 8 + l]
        for w in T.serial(8):
            for m in T.vectorized(8):
                Y[b, w * 8 + m] = X[b, w * 8 + m] * s[w * 8 + m]
                T.prefetch(X[b + 1, w * 8 + m])
)");
  expect_same_results(prefetch_reads, f);
}

}  // namespace
}  // namespace helve::testing
