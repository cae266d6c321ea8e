// Rewrites of programs that random nests do not hold: reductions, memory that may be shared, conditions and bounds that
// are read, names, while loops, allocations, waits.
#include <gtest/gtest.h>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/tensor/visit.h"
#include "helve/schedule/legality.h"
#include "ir/tensor/programs/build_ir.h"
#include "visits.h"

namespace helve::testing {
namespace {

const VarRef i = make_var("i"), j = make_var("j"), o = make_var("o"), n = make_var("n");

struct Moved {
  Stmt now, was;
  std::vector<std::pair<VarRef, Expr>> values = {};
};

Legality check(const FunctionRef& f, const Stmt& after, const std::vector<Moved>& moved) {
  std::vector<Origin> origins;
  for (const Moved& each : moved) {
    origins.push_back(
        {each.now.get(), visit_of(after, each.now.get()), visit_of(f->body, each.was.get()), each.values});
  }
  return check_rewrite(*f, f->body, after, origins, ExactEngine());
}

Stmt loop(LoopKind kind, const VarRef& var, Expr extent, Stmt body) {
  return for_loop(kind, {var}, {idx(0)}, {std::move(extent)}, std::move(body));
}
Stmt serial_loop(const VarRef& var, Expr extent, Stmt body) { return loop(LoopKind::Serial, var, extent, body); }
Expr reversed(const VarRef& var, int64_t extent) { return idx(extent - 1) - Expr(var); }

TEST(Legality, UpdatesOfAReductionRunInAnyOrderButNotAtOnce) {
  const BufferRef a = param("A", kFloat32, {8}), s = param("S", kFloat32, {1});
  const auto sum = [&](const Expr& at) { return store(s, {idx(0)}, load(a, {at}), {}, StoreMode::Add); };
  const Stmt was = sum(i), back = sum(reversed(i, 8));
  const FunctionRef f = function("f", {a, s}, serial_loop(i, idx(8), was));
  const Legality same = check(f, serial_loop(i, idx(8), was), {{was, was}});
  EXPECT_EQ(same.verdict, Verdict::Proved) << text_of(same);
  EXPECT_FALSE(same.reassociates);
  const Legality other = check(f, serial_loop(i, idx(8), back), {{back, was, {{i, reversed(i, 8)}}}});
  EXPECT_EQ(other.verdict, Verdict::Proved) << text_of(other);
  EXPECT_TRUE(other.reassociates);
  const Legality at_once = check(f, loop(LoopKind::Parallel, i, idx(8), was), {{was, was}});
  EXPECT_EQ(at_once.fault, RewriteFault::AtOnce);
}

TEST(Legality, APlainSumKeepsItsOrder) {
  const BufferRef a = param("A", kFloat32, {8}), s = param("S", kFloat32, {1});
  const auto sum = [&](const Expr& at) { return store(s, {idx(0)}, load(s, {idx(0)}) + load(a, {at})); };
  const Stmt was = sum(i), back = sum(reversed(i, 8));
  const FunctionRef f = function("f", {a, s}, serial_loop(i, idx(8), was));
  const Legality found = check(f, serial_loop(i, idx(8), back), {{back, was, {{i, reversed(i, 8)}}}});
  EXPECT_EQ(found.fault, RewriteFault::Turned);
  EXPECT_EQ(text_of(found), "'S[0]' at i = 7 would run before 'S[0]' at i = 6, on which it depends");
}

TEST(Legality, WhatLeavesItsLoopIsOfTheLastIteration) {
  const BufferRef a = param("A", kFloat32, {8});
  const auto guarded = [&](const Stmt& body) { return if_then(less(load(a, {idx(3)}), f32(4)), body); };
  const Stmt was = store(a, {Expr(i)}, load(a, {Expr(i)}) + f32(1)), branch = guarded(was);
  const FunctionRef f = function("f", {a}, serial_loop(i, idx(8), branch));
  const Stmt outside = guarded(serial_loop(i, idx(8), was));
  const Legality found = check(f, outside, {{outside, branch}, {was, was}});
  EXPECT_EQ(found.verdict, Verdict::Unknown) << text_of(found);
  EXPECT_EQ(found.reason, "'A[3] < 4.0' would be decided at another time");
  const FunctionRef once = function("f", {a}, serial_loop(i, idx(1), branch));
  const Stmt first = guarded(serial_loop(i, idx(1), was));
  EXPECT_EQ(check(once, first, {{first, branch}, {was, was}}).verdict, Verdict::Proved);
}

TEST(Legality, BuffersThatMayShareMemoryKeepTheirOrder) {
  const BufferRef a = param("A", kFloat32, {8}), b = param("B", kFloat32, {8});
  const Stmt was = store(b, {Expr(i)}, load(a, {Expr(i)})),
             back = store(b, {reversed(i, 8)}, load(a, {reversed(i, 8)}));
  const FunctionRef f = function("f", {a, b}, serial_loop(i, idx(8), was));
  const Stmt after = serial_loop(i, idx(8), back);
  EXPECT_EQ(check(f, after, {{back, was, {{i, reversed(i, 8)}}}}).verdict, Verdict::Proved);
  Ref<Function> aliased = make_ref<Function>(*f);
  aliased->may_alias = {MayAlias{{a, b}, {}, {}}};
  const Legality found = check(FunctionRef(aliased), after, {{back, was, {{i, reversed(i, 8)}}}});
  EXPECT_EQ(found.verdict, Verdict::Unknown);
  EXPECT_EQ(found.reason, "'A' and 'B' may share memory");
}

/// i as o * 4 + j.
const Expr kSplit = Expr(o) * idx(4) + Expr(j);
Stmt split(const Expr& extent, const Stmt& body) {
  return serial_loop(o, ceil_div(extent, idx(4)), serial_loop(j, idx(4), if_then(less(kSplit, extent), body)));
}

TEST(Legality, AGuardThatReadsIsTheSameWhereItReadsTheSame) {
  const BufferRef a = param("A", kInt32, {8}), b = param("B", kInt32, {8});
  const auto positive = [&](const Expr& at) { return less(int_imm(0, kInt32), load(a, {at})); };
  const Stmt was = store(b, {Expr(i)}, int_imm(1, kInt32)), now = store(b, {kSplit}, int_imm(1, kInt32));
  const FunctionRef f = function("f", {a, b}, serial_loop(i, idx(8), if_then(positive(i), was)));
  const std::vector<Moved> moved = {{now, was, {{i, kSplit}}}};
  const Legality same = check(f, split(idx(8), if_then(positive(kSplit), now)), moved);
  EXPECT_EQ(same.verdict, Verdict::Proved) << text_of(same);
  EXPECT_EQ(check(f, split(idx(8), if_then(positive(kSplit + idx(1)), now)), moved).verdict, Verdict::Unknown);
  const Legality all = check(f, split(idx(8), now), moved);
  EXPECT_EQ(all.verdict, Verdict::Unknown);
  EXPECT_EQ(all.reason, "'0 < A[i]' is not affine");
}

TEST(Legality, AGuardOfWhatIsWrittenIsAskedWhereItWas) {
  const BufferRef a = param("A", kInt32, {1}), b = param("B", kInt32, {8});
  const Expr open = less(int_imm(0, kInt32), load(a, {idx(0)}));
  const Stmt was = store(b, {Expr(i)}, int_imm(1, kInt32)), close = store(a, {idx(0)}, int_imm(0, kInt32));
  const Stmt guard = if_then(open, was);
  const FunctionRef f = function("f", {a, b}, serial_loop(i, idx(8), seq({guard, close})));
  EXPECT_EQ(check(f, f->body, {{guard, guard}, {was, was}, {close, close}}).verdict, Verdict::Proved);
  const Stmt inside = if_then(open, serial_loop(i, idx(8), was));
  const Stmt hoisted = seq({inside, serial_loop(i, idx(8), close)});
  const Legality found = check(f, hoisted, {{inside, guard, {{i, idx(0)}}}, {was, was}, {close, close}});
  EXPECT_NE(found.verdict, Verdict::Proved);
}

TEST(Legality, BoundsThatAreReadAreSplit) {
  const BufferRef begin = param("P", kInt32, {9}), b = param("B", kFloat32, {64});
  const Expr first = cast(load(begin, {Expr(i)}), kIndex), last = cast(load(begin, {Expr(i) + idx(1)}), kIndex);
  const Stmt was = store(b, {Expr(n)}, f32(1));
  const FunctionRef f =
      function("f", {begin, b}, serial_loop(i, idx(8), for_loop(LoopKind::Serial, {n}, {first}, {last - first}, was)));
  const Expr at = first + kSplit;
  const Stmt now = store(b, {at}, f32(1));
  const Legality split_rows = check(f, serial_loop(i, idx(8), split(last - first, now)), {{now, was, {{n, at}}}});
  EXPECT_EQ(split_rows.verdict, Verdict::Proved) << text_of(split_rows);
  const Stmt unrolled = for_loop(LoopKind::Unroll, {n}, {first}, {last - first}, was);
  const Legality same = check(f, serial_loop(i, idx(8), unrolled), {{was, was}});
  EXPECT_EQ(same.verdict, Verdict::Proved) << text_of(same);
}

TEST(Legality, ANameIsTheSameWhereItsValueIs) {
  const BufferRef a = param("A", kFloat32, {9}), b = param("B", kFloat32, {9});
  const VarRef x = make_var("x", kFloat32), y = make_var("y", kFloat32);
  const auto body = [&](const VarRef& name, const Expr& read, const Expr& at) {
    return std::pair(bind(name, load(a, {read}) * f32(2)), store(b, {at}, Expr(name) + f32(1)));
  };
  const auto [old_name, was] = body(x, i, i);
  const FunctionRef f = function("f", {a, b}, serial_loop(i, idx(8), seq({old_name, was})));
  const auto [name, now] = body(y, kSplit, kSplit);
  EXPECT_EQ(check(f, split(idx(8), seq({name, now})), {{now, was, {{i, kSplit}}}}).verdict, Verdict::Proved);
  const auto [wrong, other] = body(y, kSplit + idx(1), kSplit);
  EXPECT_NE(check(f, split(idx(8), seq({wrong, other})), {{other, was, {{i, kSplit}}}}).verdict, Verdict::Proved);
}

TEST(Legality, ANameFromOutsideIsNoOther) {
  const BufferRef a = param("A", kFloat32, {2}), b = param("B", kFloat32, {8});
  const VarRef x = make_var("x", kFloat32), y = make_var("y", kFloat32);
  const Stmt was = store(b, {Expr(i)}, Expr(x)), other = store(b, {Expr(i)}, Expr(y));
  const Stmt region = serial_loop(i, idx(8), was), after = serial_loop(i, idx(8), other);
  const FunctionRef f =
      function("f", {a, b}, seq({bind(x, load(a, {idx(0)})), bind(y, load(a, {idx(1)})), region}));
  const auto in_region = [&](const Stmt& now, const Stmt& s) {
    const Origin origin{s.get(), visit_of(now, s.get()), visit_of(region, was.get()), {}};
    return check_rewrite(*f, region, now, {origin}, ExactEngine());
  };
  EXPECT_EQ(in_region(region, was).verdict, Verdict::Proved);
  EXPECT_NE(in_region(after, other).verdict, Verdict::Proved);
}

TEST(Legality, ANameOfWhatChangesIsTheOneOfItsIteration) {
  const BufferRef a = param("A", kInt32, {1}), b = param("B", kInt32, {8});
  const VarRef x = make_var("x", kInt32);
  const Stmt name = bind(x, load(a, {idx(0)})), use = store(b, {Expr(i)}, Expr(x));
  const Stmt count = store(a, {idx(0)}, load(a, {idx(0)}) + int_imm(1, kInt32));
  const FunctionRef f = function("f", {a, b}, serial_loop(i, idx(8), seq({name, use, count})));
  EXPECT_EQ(check(f, f->body, {{name, name}, {use, use}, {count, count}}).verdict, Verdict::Proved);
  const Stmt once = seq({name, serial_loop(i, idx(8), use), serial_loop(i, idx(8), count)});
  const Legality found = check(f, once, {{name, name, {{i, idx(0)}}}, {use, use}, {count, count}});
  EXPECT_NE(found.verdict, Verdict::Proved) << "later iterations read what was counted";
}

TEST(Legality, ALoopThatRepeatsAStatementRunsItTwice) {
  const BufferRef b = param("B", kFloat32, {8});
  const Stmt was = store(b, {Expr(i)}, f32(1));
  const FunctionRef f = function("f", {b}, serial_loop(i, idx(8), was));
  const Legality found = check(f, serial_loop(o, idx(2), serial_loop(i, idx(8), was)), {{was, was}});
  EXPECT_EQ(found.fault, RewriteFault::Twice);
  const Stmt overlapping = store(b, {Expr(o) * idx(3) + Expr(j)}, f32(1));
  const Stmt tiles = serial_loop(o, idx(2), serial_loop(j, idx(5), overlapping));
  EXPECT_EQ(check(f, tiles, {{overlapping, was, {{i, Expr(o) * idx(3) + Expr(j)}}}}).fault, RewriteFault::Twice);
}

TEST(Legality, AnotherStatementIsNotTheOneItComesFrom) {
  const BufferRef b = param("B", kFloat32, {9});
  const Stmt was = store(b, {Expr(i)}, f32(1)), beside = store(b, {Expr(i) + idx(1)}, f32(1));
  const Stmt other = store(b, {Expr(i)}, f32(2));
  const FunctionRef f = function("f", {b}, serial_loop(i, idx(8), was));
  const Legality found = check(f, serial_loop(i, idx(8), beside), {{beside, was}});
  EXPECT_EQ(found.fault, RewriteFault::Changed);
  EXPECT_EQ(text_of(found), "'B[i] = 1.0' at i = 0 would become another statement");
  EXPECT_EQ(check(f, serial_loop(i, idx(8), other), {{other, was}}).verdict, Verdict::Unknown);
  EXPECT_EQ(check(f, serial_loop(i, idx(8), was), {}).fault, RewriteFault::Added) << "without an origin";
}

TEST(Legality, AWhileLoopIsOneStatement) {
  const BufferRef a = param("A", kInt32, {8});
  const auto count = [&](const Expr& at) {
    return while_loop(less(load(a, {at}), int_imm(3, kInt32)), store(a, {at}, load(a, {at}) + int_imm(1, kInt32)));
  };
  const Stmt was = count(i), back = count(reversed(i, 8));
  const FunctionRef f = function("f", {a}, serial_loop(i, idx(8), was));
  const Legality found = check(f, serial_loop(i, idx(8), back), {{back, was, {{i, reversed(i, 8)}}}});
  EXPECT_EQ(found.verdict, Verdict::Proved) << text_of(found);
  const Stmt one = count(idx(0));
  const FunctionRef g = function("f", {a}, serial_loop(i, idx(8), one));
  const Legality turned = check(g, serial_loop(i, idx(8), one), {{one, one, {{i, reversed(i, 8)}}}});
  EXPECT_NE(turned.verdict, Verdict::Proved);
}

TEST(Legality, MemoryOfAnIterationIsLiftedFromSerialLoopsOnly) {
  const BufferRef a = param("A", kFloat32, {8}), b = param("B", kFloat32, {8}), s = shared("S", kFloat32, {1});
  const Stmt fill = store(s, {idx(0)}, load(a, {Expr(i)})), use = store(b, {Expr(i)}, load(s, {idx(0)}));
  const std::vector<Moved> moved = {{fill, fill}, {use, use}};
  const Stmt inside = serial_loop(i, idx(8), seq({alloc(s), fill, use}));
  const Stmt outside = seq({alloc(s), serial_loop(i, idx(8), seq({fill, use}))});
  const FunctionRef f = function("f", {a, b}, inside);
  const Stmt parallel = loop(LoopKind::Parallel, i, idx(8), seq({alloc(s), fill, use}));
  EXPECT_EQ(check(f, parallel, moved).verdict, Verdict::Proved) << "an iteration has its own";
  EXPECT_EQ(check(f, outside, moved).verdict, Verdict::Proved);
  const Stmt at_once = seq({alloc(s), loop(LoopKind::Parallel, i, idx(8), seq({fill, use}))});
  EXPECT_EQ(check(f, at_once, moved).fault, RewriteFault::AtOnce);
  const FunctionRef unordered = function("f", {a, b}, parallel);
  EXPECT_EQ(check(unordered, at_once, moved).fault, RewriteFault::Shared) << "though each had its own before";
  const Stmt apart = seq({alloc(s), serial_loop(i, idx(8), fill), serial_loop(i, idx(8), use)});
  EXPECT_EQ(check(f, apart, moved).fault, RewriteFault::Turned);
  const FunctionRef g = function("f", {a, b}, outside);
  EXPECT_EQ(check(g, inside, moved).verdict, Verdict::Proved) << "no iteration reads what another one wrote";
  const Stmt late = seq({alloc(s), serial_loop(i, idx(8), seq({use, fill}))});
  const Stmt late_inside = serial_loop(i, idx(8), seq({alloc(s), use, fill}));
  EXPECT_EQ(check(function("f", {a, b}, late), late_inside, moved).fault, RewriteFault::Memory);
}

TEST(Legality, CopiesStayBeforeTheirWait) {
  const BufferRef a = param("A", kFloat32, {8}), b = param("B", kFloat32, {8}), s = shared("S", kFloat32, {8});
  const Stmt copy = tile_op(TileOpcode::CopyAsync, {whole_region(a), whole_region(s)});
  const Stmt wait = tile_op(TileOpcode::WaitAsync, {});
  const Stmt use = tile_op(TileOpcode::Copy, {whole_region(s), whole_region(b)});
  const FunctionRef f = function("f", {a, b}, seq({alloc(s), copy, wait, use}));
  const std::vector<Moved> moved = {{copy, copy}, {wait, wait}, {use, use}};
  EXPECT_EQ(check(f, f->body, moved).verdict, Verdict::Proved);
  EXPECT_EQ(check(f, seq({alloc(s), copy, use, wait}), moved).fault, RewriteFault::Turned);
  EXPECT_EQ(check(f, seq({alloc(s), wait, copy, use}), moved).fault, RewriteFault::Turned);
}

TEST(Legality, ARegionKnowsWhatHoldsAroundIt) {
  const BufferRef a = param("A", kFloat32, {64});
  const Stmt was = store(a, {Expr(j)}, load(a, {Expr(j) + Expr(i)}));
  const auto back = [&](const Expr& at) { return store(a, {at}, load(a, {at + Expr(i)})); };
  const Stmt turned = back(reversed(j, 4));
  const Stmt region = serial_loop(j, idx(4), was), after = serial_loop(j, idx(4), turned);
  for (const int64_t begin : {1, 4}) {
    const FunctionRef f = function("f", {a}, for_loop(LoopKind::Serial, {i}, {idx(begin)}, {idx(3)}, region));
    const std::vector<Origin> origins = {{turned.get(), 1, 1, {{j, reversed(j, 4)}}}};
    const Legality found = check_rewrite(*f, region, after, origins, ExactEngine());
    EXPECT_EQ(found.verdict, begin == 4 ? Verdict::Proved : Verdict::Refuted);
    EXPECT_EQ(value_in(found.given, i.get()), begin == 1 ? std::optional<int64_t>(1) : std::nullopt);
  }
}

}  // namespace
}  // namespace helve::testing
