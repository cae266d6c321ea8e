// Rewrites after which other iterations share an execution of an allocation: the old program has no dependence between
// them, as each had memory of its own.
#include <gtest/gtest.h>

#include "helve/ir/tensor/visit.h"
#include "helve/schedule/legality.h"
#include "ir/tensor/programs/build_ir.h"
#include "visits.h"

namespace helve::testing {
namespace {

const VarRef i = make_var("i"), j = make_var("j"), o = make_var("o");
const BufferRef a = param("A", kFloat32, {16}), b = param("B", kFloat32, {16}), c = param("C", kFloat32, {16}),
                d = param("D", kFloat32, {16});

struct Moved {
  Stmt now, was;
  std::vector<std::pair<VarRef, Expr>> values = {};
};

Legality check(const Stmt& before, const Stmt& after, const std::vector<Moved>& moved,
               const std::vector<BufferRef>& by_value = {}) {
  const FunctionRef f = function("f", {a, b, c, d}, before);
  std::vector<Origin> origins;
  for (const Moved& each : moved) {
    origins.push_back({each.now.get(), visit_of(after, each.now.get()), visit_of(before, each.was.get()), each.values});
  }
  return check_rewrite(*f, before, after, origins, ExactEngine(), by_value);
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
  // One after the other they have another order than before, but each reads what it wrote itself.
  const Stmt apart = loop(i, 8, seq({alloc(s), in, out, turned_in, turned_out}));
  EXPECT_EQ(check(before, apart, moved).verdict, Verdict::Proved);
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

/// Iterations that have copies of memory touch one element of it without a word about those that share it.
TEST(Executions, CopiesOfIterationsPromiseNothing) {
  const BufferRef s = shared("S", kFloat32, {1});
  const Stmt in = store(s, {idx(0)}, load(a, {Expr(i)})), out = store(b, {Expr(i)}, load(s, {idx(0)}));
  const auto program = [&](LoopKind kind) { return seq({alloc(s), loop(i, 8, seq({in, out}), kind)}); };
  const auto found = [&](LoopKind was, LoopKind now) {
    return check(program(was), program(now), {{in, in}, {out, out}}, {s});
  };
  EXPECT_EQ(found(LoopKind::Persistent, LoopKind::Persistent).verdict, Verdict::Proved);
  EXPECT_EQ(found(LoopKind::Persistent, LoopKind::Serial).verdict, Verdict::Proved);
  EXPECT_EQ(found(LoopKind::Persistent, LoopKind::Parallel).fault, RewriteFault::Shared);
  EXPECT_EQ(found(LoopKind::Serial, LoopKind::Persistent).fault, RewriteFault::Shared);
}

TEST(Executions, WhatIsOnlyReadIsSharedByIterationsWithoutOrder) {
  const BufferRef w = shared("W", kFloat32, {1});
  const Stmt was = store(b, {Expr(i)}, load(a, {idx(0)})), now = store(b, {Expr(i)}, load(w, {idx(0)}));
  const Stmt copy = store(w, {idx(0)}, load(a, {idx(0)}));
  const Legality found = check(loop(i, 8, was, LoopKind::Parallel),
                               seq({alloc(w), copy, loop(i, 8, now, LoopKind::Parallel)}), {{now, was}});
  EXPECT_EQ(found.verdict, Verdict::Proved) << text_of(found);
}

/// Statements of a launch of so many blocks, where the items of loops are dealt to them.
struct Launch {
  VarRef block = make_var("p");
  int64_t blocks = 3;

  Stmt items(const Stmt& body, LoopKind kind = LoopKind::Persistent, int64_t count = 8) const {
    return loop(i, count, body, kind);
  }
  Legality check(const Stmt& before, const Stmt& after, const std::vector<Moved>& moved,
                 const std::optional<MeshShape>& mesh = {}, int64_t cluster = 1) const {
    Ref<Function> f = make_ref<Function>(*function("f", {a, b, c, d}, kernel({block}, {idx(blocks)}, 128, before)));
    f->mesh = mesh;
    f->body = Stmt(copy_with(*as<Kernel>(f->body), [&](Kernel& grid) { grid.cluster = cluster; }));
    std::vector<Origin> origins;
    for (const Moved& each : moved) {
      const size_t now = visit_of(after, each.now.get()), was = visit_of(before, each.was.get());
      origins.push_back({each.now.get(), now, was, each.values});
    }
    return check_rewrite(*f, before, after, origins, ExactEngine());
  }
};

const Stmt by_item = store(b, {Expr(i)}, load(a, {Expr(i)}));

TEST(Dealt, ItemsOfOneBlockAreNotRunByAll) {
  const Launch launch;
  const auto found = [&](LoopKind was, LoopKind now, const std::optional<MeshShape>& mesh = {}) {
    return launch.check(launch.items(by_item, was), launch.items(by_item, now), {{by_item, by_item}}, mesh);
  };
  const LoopKind dealt = LoopKind::Persistent, serial = LoopKind::Serial;
  EXPECT_EQ(found(dealt, dealt).verdict, Verdict::Proved);
  EXPECT_EQ(text_of(found(dealt, serial)), "the items of 'i' are dealt to blocks, and all would run them");
  EXPECT_EQ(text_of(found(serial, dealt)), "all blocks run what the items of 'i' would be dealt of");
  EXPECT_EQ(found(dealt, serial, MeshShape{{3}, {"x"}}).verdict, Verdict::Proved);
}

TEST(Dealt, WhereBlocksAreToldApartItemsStayWhereTheyAre) {
  const Launch launch;
  const Expr back = idx(7) - Expr(i);
  const auto turned = [&](const Expr& value, int64_t cluster = 1) {
    const Stmt was = store(b, {Expr(i)}, value), now = store(b, {back}, substitute(value, {{i.get(), back}}));
    return launch.check(launch.items(was), launch.items(now), {{now, was, {{i, back}}}}, {}, cluster);
  };
  EXPECT_EQ(turned(load(a, {Expr(i)})).verdict, Verdict::Proved);
  EXPECT_EQ(text_of(turned(load(a, {Expr(launch.block)}))), "other blocks would run the items of 'i'");
  EXPECT_EQ(text_of(turned(load(a, {Expr(i)}), 3)), "other blocks would run the items of 'i'");
}

/// What loops around repeat is one block's, one turn after another.
TEST(Dealt, ATurnOfAnItemIsInTheBlockOfTheOneBefore) {
  const Launch launch;
  const auto repeated = [&](const Expr& value) {
    const Stmt was = store(b, {Expr(i)}, load(b, {Expr(i)}) + load(a, {Expr(j)}));
    const Stmt now = store(b, {value}, load(b, {value}) + load(a, {Expr(j)}));
    return launch.check(loop(j, 2, launch.items(was)), loop(j, 2, launch.items(now)), {{now, was, {{i, value}}}});
  };
  EXPECT_EQ(repeated(idx(7) - Expr(i)).verdict, Verdict::Proved);
  EXPECT_EQ(text_of(repeated(floor_mod(Expr(i) + Expr(j), idx(8)))), "other blocks would run the items of 'i'");
}

TEST(Dealt, AnItemNeedsWhatItsBlockDidForAnItemOfAnotherLoop) {
  const Launch launch;
  const Expr back = idx(7) - Expr(i);
  const Stmt first = store(b, {Expr(i)}, load(a, {Expr(i)})), was = store(c, {Expr(i)}, load(b, {Expr(i)})),
             now = store(c, {back}, load(b, {back}));
  const auto program = [&](const Stmt& second) { return seq({launch.items(first), launch.items(second)}); };
  EXPECT_EQ(launch.check(program(was), program(was), {{first, first}, {was, was}}).verdict, Verdict::Proved);
  EXPECT_EQ(text_of(launch.check(program(was), program(now), {{first, first}, {now, was, {{i, back}}}})),
            "other blocks would run the items of 'i'");
}

/// Items are counted row by row, so that another extent deals them otherwise.
TEST(Dealt, AsManyItemsOfEachDimension) {
  const Launch launch;
  const Stmt was = store(b, {Expr(i) * idx(3) + Expr(j)}, load(a, {Expr(launch.block)}));
  const auto items = [&](const Stmt& body, int64_t columns) {
    return for_loop(LoopKind::Persistent, {i, j}, {idx(0), idx(0)}, {idx(2), idx(columns)}, body);
  };
  const auto found = [&](int64_t columns) {
    return launch.check(items(was, 3), items(if_then(less(Expr(j), idx(3)), was), columns), {{was, was}});
  };
  EXPECT_EQ(found(3).verdict, Verdict::Proved);
  EXPECT_EQ(text_of(found(4)), "other blocks would run the items of 'i'");
}

}  // namespace
}  // namespace helve::testing
