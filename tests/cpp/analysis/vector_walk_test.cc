// Which loops over vectors could begin elsewhere.
#include "helve/analysis/vector_walk.h"

#include <gtest/gtest.h>

#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/visit.h"
#include "helve/print/printer.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

const VarRef b = make_var("b"), v = make_var("v"), l = make_var("l"), n = make_var("n");
const BufferRef x = param("X", kFloat32, {4, 64}), y = param("Y", kFloat32, {4, 64}), z = param("Z", kFloat32, {4, 64});
const BufferRef own = shared("t", kFloat32, {8});

Expr at(int64_t lanes = 8) { return Expr(v) * idx(lanes) + l; }

Stmt over(const Stmt& body, LoopKind kind = LoopKind::Serial, int64_t lanes = 8) {
  return for_loop(kind, v, idx(8), for_loop(LoopKind::Vectorized, l, idx(lanes), body));
}

/// Where the walk stores, by position, and its positions; empty where there is no walk.
std::string moved(const Stmt& loop) {
  const std::optional<VectorWalk> walk = vector_walk(*as<For>(loop));
  if (!walk) return "";
  std::string out;
  for (const Expr& index : walk->store->indices) out += (out.empty() ? "" : ", ") + to_text(index);
  return out + " from " + to_text(walk->first) + ": " + to_text(walk->vectors) + " x " + std::to_string(walk->lanes);
}

TEST(VectorWalk, ElementsByTheirPosition) {
  EXPECT_EQ(moved(over(store(y, {b, at()}, load(x, {b, at()})))), "b, position from 0: 8 x 8");
  EXPECT_EQ(moved(over(store(y, {b, at()}, load(x, {b, at()})), LoopKind::Parallel)), "b, position from 0: 8 x 8");
  EXPECT_NE(moved(over(store(y, {b, at() + idx(3)}, load(x, {at(), b}) * load(z, {idx(0), at() * idx(2)})))), "");
  EXPECT_NE(moved(over(store(y, {b, at()}, cast(at() + idx(1), kFloat32)))), "") << "the position as a value";
  EXPECT_NE(moved(over(store(y, {b, (Expr(b) * idx(4) + v) * idx(8) + l}, f32(1)))), "") << "a tile of a row";
}

TEST(VectorWalk, SeveralLoops) {
  const VarRef c = make_var("c");
  const auto nest = [&](const Expr& position, int64_t first = 0) {
    const Stmt inner = for_loop(LoopKind::Vectorized, l, idx(8), store(y, {b, position}, load(x, {b, position})));
    const Stmt from_zero = for_loop(LoopKind::Serial, v, idx(3), inner);
    const Ref<For> middle = copy_with(*as<For>(from_zero), [&](For& copy) { copy.begins[0] = idx(first); });
    return for_loop(LoopKind::Serial, c, Expr(n), Stmt(middle));
  };
  const Expr tile = Expr(b) * idx(100) + Expr(c) * idx(24) + Expr(v) * idx(8) + l;
  EXPECT_EQ(moved(nest(tile)), "b, b * 100 + position from 0: n * 3 x 8");
  EXPECT_EQ(moved(nest(Expr(c) * idx(32) + Expr(v) * idx(8) + l)), "") << "gaps between tiles";
  EXPECT_EQ(moved(nest(Expr(v) * idx(8) + l)), "") << "each time the same";
  EXPECT_EQ(moved(nest(tile, 1)), "") << "the inner loop does not begin at 0";
}

TEST(VectorWalk, BeginsAnywhere) {
  const Stmt body = for_loop(LoopKind::Vectorized, l, idx(8), store(y, {b, at()}, load(x, {b, at()})));
  EXPECT_EQ(moved(for_loop(LoopKind::Serial, {v}, {idx(3)}, {Expr(n)}, body)), "b, position from 24: n x 8");
}

TEST(VectorWalk, PrefetchesFollowThePosition) {
  const auto prefetched = [&](const Expr& index) {
    const Stmt loop = over(seq({store(y, {b, at()}, load(x, {b, at()})), prefetch(x, {Expr(b) + idx(1), index})}));
    const std::optional<VectorWalk> walk = vector_walk(*as<For>(loop));
    std::string out = "left out";
    helve::walk(walk->body, [&](const Stmt& s) {
      if (const Prefetch* n = as<Prefetch>(s)) out = to_text(n->indices[1]);
    });
    return out;
  };
  EXPECT_EQ(prefetched(at()), "position");
  EXPECT_EQ(prefetched(Expr(v)), "left out");
}

TEST(VectorWalk, WhatAnIterationAllocatesIsItsOwn) {
  const Stmt use = for_loop(LoopKind::Vectorized, l, idx(8),
                            seq({store(own, {l}, load(x, {b, at()}) * f32(2)), store(y, {b, at()}, load(own, {l}))}));
  EXPECT_EQ(moved(for_loop(LoopKind::Serial, v, idx(8), seq({alloc(own), use}))), "b, position from 0: 8 x 8");
  EXPECT_EQ(vector_walk(*as<For>(for_loop(LoopKind::Serial, v, idx(8), seq({alloc(own), use}))))->allocations.size(),
            1u);
  EXPECT_EQ(moved(for_loop(LoopKind::Serial, v, idx(8), use)), "") << "kept from one iteration to the next";
}

TEST(VectorWalk, NotByPosition) {
  const Expr value = load(x, {b, at()});
  EXPECT_EQ(moved(over(store(y, {b, Expr(v) * idx(16) + l}, value))), "") << "gaps between vectors";
  EXPECT_EQ(moved(over(store(y, {b, at()}, load(x, {b, l})))), "") << "the same elements in every vector";
  EXPECT_EQ(moved(over(store(y, {v, l}, value))), "") << "a row a vector";
  EXPECT_EQ(moved(over(store(y, {at(), b}, value))), "") << "a column";
  EXPECT_EQ(moved(over(store(y, {b, at() * idx(2)}, value))), "");
  EXPECT_EQ(moved(over(store(y, {b, floor_div(at(), idx(2))}, value))), "");
  EXPECT_EQ(moved(over(store(y, {b, at()}, cast(l, kFloat32)))), "") << "the lane as a value";
  EXPECT_EQ(moved(over(store(y, {b, at()}, value), LoopKind::Unroll)), "");
  const BufferRef apart = make_buffer("P", kFloat32, MemoryScope::Param, {idx(4), idx(64)}, {}, {idx(256), idx(2)});
  EXPECT_EQ(moved(over(store(apart, {b, at()}, value))), "");
}

TEST(VectorWalk, OneTensorThatItDoesNotRead) {
  const Expr value = load(x, {b, at()});
  EXPECT_EQ(moved(over(store(y, {b, at()}, load(y, {b, at()})))), "");
  EXPECT_EQ(moved(over(seq({store(y, {b, at()}, value), store(z, {b, at()}, value)}))), "");
  EXPECT_EQ(moved(over(if_then(less(Expr(b), idx(2)), store(y, {b, at()}, value)))), "");
  EXPECT_EQ(moved(serial(v, idx(8), {store(y, {b, v}, value)})), "");
}

}  // namespace
}  // namespace helve::testing
