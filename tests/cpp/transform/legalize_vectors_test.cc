// Vector loops that are left are those that run in step; all others compute the same as plain loops.
#include "run_pass.h"

namespace helve::testing {
namespace {

/// The body over lanes l = begin ... begin + extent - 1 of x (300,) into y (300,).
FunctionRef lanes(const Expr& extent, const std::function<Stmt(const BufferRef& x, const BufferRef& y, Expr l)>& body,
                  int64_t begin = 0) {
  const BufferRef x = param("X", kInt32, {300}), y = param("Y", kInt32, {300});
  const VarRef l = make_var("l");
  return function(
      "main", {x, y},
      one_block({for_loop(LoopKind::Vectorized, std::vector<VarRef>{l}, {idx(begin)}, {extent}, body(x, y, Expr(l)))}));
}

Stmt copied(const BufferRef& x, const BufferRef& y, const Expr& l) { return store(y, {l}, load(x, {l})); }

size_t vector_loops(const FunctionRef& f) {
  size_t count = 0;
  walk(f->body, [&](const Stmt& s) {
    const For* loop = as<For>(s);
    count += loop && loop->loop == LoopKind::Vectorized;
  });
  return count;
}

TEST(LegalizeVectors, CutsIntoPowersOfTwo) {
  expect_prints(legalize_vectors, lanes(idx(101), copied, 3), R"(
@T.prim_func
def main(X: T.Tensor((300,), "int32"), Y: T.Tensor((300,), "int32")):
    with T.Kernel(1) as bx:
        for v in T.serial(3):
            for l in T.vectorized(32):
                Y[v * 32 + l + 3] = X[v * 32 + l + 3]
        for l_1 in T.vectorized(4):
            Y[l_1 + 99] = X[l_1 + 99]
        Y[103] = X[103]
)");
}

TEST(LegalizeVectors, EveryExtentComputesTheSame) {
  for (int64_t extent : {0, 1, 2, 3, 7, 16, 33, 63, 64, 65, 100, 131, 255}) {
    const FunctionRef f = lanes(idx(extent), copied, extent % 3);
    expect_same_results(legalize_vectors, f);
    EXPECT_EQ(vector_loops(legalize_vectors(f, {})) > 0, extent > 1) << extent;
  }
  for (int64_t extent : {2, 16, 64}) expect_untouched(legalize_vectors, lanes(idx(extent), copied));
}

/// A sum into one element, a prefix sum, a histogram: lanes in step would lose updates.
TEST(LegalizeVectors, DependentIterationsStayInOrder) {
  const auto bin = [](const BufferRef& x, const Expr& l) {
    return cast(apply(Op::FloorMod, {load(x, {l}), int_imm(4, kInt32)}), kIndex);
  };
  const auto sum = [](const BufferRef& x, const BufferRef& y, const Expr& l) {
    return store(y, {idx(0)}, load(y, {idx(0)}) + load(x, {l}));
  };
  const auto prefix = [](const BufferRef& x, const BufferRef& y, const Expr& l) {
    return store(y, {l + idx(1)}, load(y, {l}) + load(x, {l}));
  };
  const auto histogram = [&](const BufferRef& x, const BufferRef& y, const Expr& l) {
    return store(y, {bin(x, l)}, load(y, {bin(x, l)}) + int_imm(1, kInt32));
  };
  for (const auto& body : {std::function<Stmt(const BufferRef&, const BufferRef&, Expr)>(sum), {prefix}, {histogram}}) {
    EXPECT_EQ(vector_loops(legalize_vectors(lanes(idx(16), body), {})), 0u);
  }
  const auto scatter = [&](const BufferRef& x, const BufferRef& y, const Expr& l) {
    return store(y, {bin(x, l)}, cast(l, kInt32));  // the last lane's value stays, in step too
  };
  expect_untouched(legalize_vectors, lanes(idx(16), scatter));
}

TEST(LegalizeVectors, NoVectorIsInsideAnother) {
  const auto nest = [](const BufferRef& x, const BufferRef& y, const Expr& l) {
    const VarRef k = make_var("k");
    const Expr at = l * idx(4) + Expr(k);
    return for_loop(LoopKind::Vectorized, k, idx(4), store(y, {at}, load(x, {at})));
  };
  const FunctionRef f = lanes(idx(8), nest);
  expect_same_results(legalize_vectors, f);
  EXPECT_EQ(vector_loops(legalize_vectors(f, {})), 1u);
}

TEST(LegalizeVectors, EachChunkHasMemoryOfItsOwn) {
  const auto through = [](const BufferRef& x, const BufferRef& y, const Expr& l) {
    const BufferRef own = make_buffer("own", kInt32, MemoryScope::Local, {idx(1)});
    return seq({alloc(own), store(own, {idx(0)}, load(x, {l})), store(y, {l}, load(own, {idx(0)}) + load(x, {l}))});
  };
  expect_same_results(legalize_vectors, lanes(idx(100), through));
}

TEST(LegalizeVectors, ExtentsOfTheCallAreNoVectors) {
  const VarRef n = make_var("N"), l = make_var("l");
  const BufferRef y = make_buffer("Y", kInt32, MemoryScope::Param, {Expr(n)});
  const FunctionRef f = dynamic_function(
      "main", {n}, {y},
      one_block({for_loop(LoopKind::Vectorized, l, Expr(n), store(y, {Expr(l)}, cast(Expr(l), kInt32)))}));
  EXPECT_EQ(vector_loops(legalize_vectors(f, {})), 0u);
}

}  // namespace
}  // namespace helve::testing
