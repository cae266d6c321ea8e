// Rewrites after which other iterations share an execution of an allocation: the old program has no dependence between
// them, as each had memory of its own.
#include <gtest/gtest.h>

#include "helve/ir/tensor/visit.h"
#include "helve/schedule/legality.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

const VarRef i = make_var("i"), j = make_var("j"), o = make_var("o");
const BufferRef a = param("A", kFloat32, {16}), b = param("B", kFloat32, {16}), c = param("C", kFloat32, {16}),
                d = param("D", kFloat32, {16});

struct Moved {
  Stmt now, was;
  std::vector<std::pair<VarRef, Expr>> values = {};
};

size_t visit_of(const Stmt& region, const StmtNode* stmt) {
  size_t visit = 0, found = SIZE_MAX;
  walk(region, [&](const Stmt& s) {
    if (s.get() == stmt) found = std::min(found, visit);
    ++visit;
  });
  return found;
}

Legality check(const Stmt& before, const Stmt& after, const std::vector<Moved>& moved) {
  const FunctionRef f = function("f", {a, b, c, d}, before);
  std::vector<Origin> origins;
  for (const Moved& each : moved) {
    origins.push_back({each.now.get(), visit_of(after, each.now.get()), visit_of(before, each.was.get()), each.values});
  }
  return check_rewrite(*f, before, after, origins, ExactEngine());
}

Stmt loop(const VarRef& var, int64_t extent, const Stmt& body, LoopKind kind = LoopKind::Serial) {
  return for_loop(kind, {var}, {idx(0)}, {idx(extent)}, body);
}

TEST(Executions, BoxesThatOverlapInPartMeet) {
  for (const int64_t step : {1, 2}) {
    const BufferRef s = shared("S", kFloat32, {16});
    const Expr at = Expr(i) * idx(step);
    const Stmt in = tile_op(TileOpcode::Copy, {box(a, {{at, 2}}), box(s, {{at, 2}})});
    const Stmt out = tile_op(TileOpcode::Copy, {box(s, {{at, 2}}), box(b, {{Expr(i) * idx(2), 2}})});
    const Stmt own = loop(i, 4, seq({alloc(s), in, out}), LoopKind::Parallel);
    const Stmt one = seq({alloc(s), loop(i, 4, seq({in, out}), LoopKind::Parallel)});
    const Legality found = check(own, one, {{in, in}, {out, out}});
    EXPECT_EQ(found.verdict, step == 1 ? Verdict::Refuted : Verdict::Proved) << text_of(found);
    EXPECT_EQ(found.fault, step == 1 ? RewriteFault::Shared : RewriteFault::None);
  }
}

TEST(Executions, AsManyLoopsAroundAnAllocationMayBeOtherLoops) {
  const BufferRef s = shared("S", kFloat32, {1});
  const Stmt in = store(s, {idx(0)}, load(a, {Expr(i)})), out = store(b, {Expr(i)}, load(s, {idx(0)}));
  const Stmt own = loop(i, 8, seq({alloc(s), loop(j, 1, seq({in, out}))}), LoopKind::Parallel);
  const Stmt one = loop(j, 1, seq({alloc(s), loop(i, 8, seq({in, out}), LoopKind::Parallel)}));
  EXPECT_EQ(check(own, own, {{in, in}, {out, out}}).verdict, Verdict::Proved);
  EXPECT_EQ(check(own, one, {{in, in}, {out, out}}).fault, RewriteFault::Shared);
}

TEST(Executions, AnotherBufferIsNoReasonToShareIt) {
  const BufferRef s = shared("S", kFloat32, {1}), t = shared("S", kFloat32, {1});
  const auto fill = [](const BufferRef& m) { return store(m, {idx(0)}, load(a, {Expr(i)})); };
  const auto use = [](const BufferRef& m) { return store(b, {Expr(i)}, load(m, {idx(0)})); };
  const Stmt in = fill(s), out = use(s), now_in = fill(t), now_out = use(t);
  const Stmt own = loop(i, 8, seq({alloc(s), in, out}), LoopKind::Parallel);
  const Stmt renamed = loop(i, 8, seq({alloc(t), now_in, now_out}), LoopKind::Parallel);
  const Stmt one = seq({alloc(t), loop(i, 8, seq({now_in, now_out}), LoopKind::Parallel)});
  EXPECT_EQ(check(own, renamed, {{now_in, in}, {now_out, out}}).verdict, Verdict::Proved);
  EXPECT_EQ(check(own, one, {{now_in, in}, {now_out, out}}).fault, RewriteFault::Shared);
}

/// In one iteration of the old loop the two halves use different elements; in one of the new loop the same.
TEST(Executions, StatementsOfOneExecutionMayHaveBeenInSeveral) {
  const BufferRef s = shared("S", kFloat32, {8});
  const auto back = [](const VarRef& var) { return idx(7) - Expr(var); };
  const Stmt in = store(s, {Expr(i)}, load(a, {Expr(i)})), out = store(b, {Expr(i)}, load(s, {Expr(i)}));
  const Stmt other_in = store(s, {back(i)}, load(c, {Expr(i)})), other_out = store(d, {Expr(i)}, load(s, {back(i)}));
  const Stmt turned_in = store(s, {Expr(i)}, load(c, {back(i)}));
  const Stmt turned_out = store(d, {back(i)}, load(s, {Expr(i)}));
  const Stmt before = loop(i, 8, seq({alloc(s), in, out, other_in, other_out}));
  const std::vector<Moved> moved = {
      {in, in}, {out, out}, {turned_in, other_in, {{i, back(i)}}}, {turned_out, other_out, {{i, back(i)}}}};
  const Stmt mixed = loop(i, 8, seq({alloc(s), in, turned_in, out, turned_out}));
  EXPECT_EQ(check(before, mixed, moved).verdict, Verdict::Refuted);
}

/// What runs in another order may do so, as long as its memory is another one. Values of copies are not followed.
TEST(Executions, OthersHaveOtherMemory) {
  const BufferRef s = shared("S", kFloat32, {1});
  const Expr at = (idx(1) - Expr(o)) * idx(2) + Expr(j);
  const auto fill = [&](const Expr& e) { return tile_op(TileOpcode::Copy, {box(a, {{e, 1}}), whole_region(s)}); };
  const auto use = [&](const Expr& e) { return tile_op(TileOpcode::Copy, {whole_region(s), box(b, {{e, 1}})}); };
  const Stmt in = fill(i), out = use(i), now_in = fill(at), now_out = use(at);
  const Stmt before = loop(i, 4, seq({alloc(s), in, out}));
  const Stmt after = loop(o, 2, seq({alloc(s), loop(j, 2, seq({now_in, now_out}))}));
  const Legality found = check(before, after, {{now_in, in, {{i, at}}}, {now_out, out, {{i, at}}}});
  EXPECT_EQ(found.verdict, Verdict::Proved) << text_of(found);
}

TEST(Executions, WhatIsOnlyReadIsSharedByIterationsWithoutOrder) {
  const BufferRef w = shared("W", kFloat32, {1});
  const Stmt was = store(b, {Expr(i)}, load(a, {idx(0)})), now = store(b, {Expr(i)}, load(w, {idx(0)}));
  const Stmt copy = store(w, {idx(0)}, load(a, {idx(0)}));
  const Legality found = check(loop(i, 8, was, LoopKind::Parallel),
                               seq({alloc(w), copy, loop(i, 8, now, LoopKind::Parallel)}), {{now, was}});
  EXPECT_EQ(found.verdict, Verdict::Proved) << text_of(found);
}

}  // namespace
}  // namespace helve::testing
