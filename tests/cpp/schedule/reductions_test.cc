// The law of partial results: programs that have it, and mutants of each part of it.
#include <gtest/gtest.h>

#include "helve/ir/tensor/visit.h"
#include "helve/schedule/legality.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

const VarRef o = make_var("o"), j = make_var("j"), v = make_var("v"), w = make_var("w");
const Expr kAt = Expr(o) * idx(4) + Expr(j);

Stmt loop(const VarRef& var, int64_t extent, const Stmt& body, LoopKind kind = LoopKind::Serial) {
  return for_loop(kind, {var}, {idx(0)}, {idx(extent)}, body);
}

/// A sum of eight elements, two times four, and what is put in its place.
struct Sum {
  DType dtype = kInt32;
  StoreMode mode = StoreMode::Add;
  BufferRef a = param("A", dtype, {8}), c = param("C", dtype, {2}), b = param("B", dtype, {8});
  BufferRef memory = shared("W", dtype, {4});
  Stmt was = store(c, {idx(0)}, load(a, {kAt}), {}, mode);
  Stmt now = store(memory, {Expr(j)}, load(a, {kAt}), {}, mode);
  std::vector<Stmt> between = {};  ///< behind the inner loop

  Stmt filled(const Expr& value, int64_t extent = 4) const { return loop(w, extent, store(memory, {Expr(w)}, value)); }
  Stmt filled() const { return filled(number(0)); }
  Expr number(int64_t value) const {
    return dtype.is_float() ? f32(static_cast<double>(value)) : int_imm(value, dtype);
  }
  Stmt merged(const Expr& element, int64_t extent = 4) const {
    return loop(v, extent, store(c, {element}, load(memory, {Expr(v)}), {}, mode));
  }
  Stmt merged() const { return merged(idx(0)); }
  Stmt nest(const Stmt& update, std::vector<Stmt> in_outer = {}, LoopKind inner = LoopKind::Serial) const {
    std::vector<Stmt> all{loop(j, 4, update, inner)};
    all.insert(all.end(), between.begin(), between.end());
    all.insert(all.end(), in_outer.begin(), in_outer.end());
    return loop(o, 2, seq(all));
  }
  Stmt updates() const { return nest(now); }

  Legality check(std::vector<Stmt> after) const {
    after.insert(after.begin(), alloc(memory));
    return check_region(seq(after));
  }
  Legality check_region(const Stmt& after) const {
    const FunctionRef f = function("f", {a, b, c}, nest(was));
    std::vector<Origin> origins;
    const auto visit_of = [](const Stmt& region, const Stmt& stmt) {
      size_t visit = 0, at = 0;
      walk(region, [&](const Stmt& s) {
        if (s == stmt) at = visit;
        ++visit;
      });
      return at;
    };
    origins.push_back({now.get(), visit_of(after, now), visit_of(f->body, was), {}});
    for (const Stmt& s : between) origins.push_back({s.get(), visit_of(after, s), visit_of(f->body, s), {}});
    return check_rewrite(*f, f->body, after, origins, ExactEngine());
  }
};

TEST(Reductions, PartialResultsAreMergedBehindTheNest) {
  for (const DType dtype : {kInt32, kFloat32}) {
    const Sum sum{dtype};
    const Legality found = sum.check({sum.filled(), sum.updates(), sum.merged()});
    EXPECT_EQ(found.verdict, Verdict::Proved) << text_of(found);
    EXPECT_TRUE(found.reassociates);
  }
}

TEST(Reductions, TheyAreOfTheOperatorOfTheReduction) {
  Sum sum;
  sum.was = store(sum.c, {idx(0)}, load(sum.a, {kAt}), {}, StoreMode::Max);
  const Legality found = sum.check({sum.filled(), sum.updates(), sum.merged()});
  EXPECT_EQ(found.verdict, Verdict::Unknown) << "a sum of what a maximum is taken of";
  EXPECT_EQ(found.reason, "'T.update(W[j], A[o * 4 + j], \"add\")' is not the statement 'T.update(C[0], "
                          "A[o * 4 + j], \"max\")' that it comes from");
}

/// Who allocates memory around the region may use it behind.
TEST(Reductions, TheyAreInMemoryOfTheirOwn) {
  const Sum sum;
  const Stmt before = sum.nest(sum.was), after = seq({sum.filled(), sum.updates(), sum.merged()});
  const FunctionRef f = function("f", {sum.a, sum.b, sum.c}, seq({alloc(sum.memory), before}));
  size_t visit = 0, now = 0, was = 0;
  walk(after, [&](const Stmt& s) { now = s == sum.now ? visit : now, ++visit; });
  visit = 0;
  walk(before, [&](const Stmt& s) { was = s == sum.was ? visit : was, ++visit; });
  EXPECT_EQ(check_rewrite(*f, before, after, {{sum.now.get(), now, was, {}}}, ExactEngine()).fault,
            RewriteFault::Added);
}

/// A sum of halves is rounded when it is merged, and not before.
TEST(Reductions, TheyAreNotRoundedBeforeTheResultIs) {
  constexpr DType kHalf{TypeCode::Float, 16};
  Sum sum;
  sum.a = param("A", kHalf, {8});
  sum.c = param("C", kHalf, {2});
  sum.was = store(sum.c, {idx(0)}, load(sum.a, {kAt}), {}, StoreMode::Add);
  const auto found = [&](DType dtype) {
    sum.memory = shared("W", dtype, {4});
    sum.now = store(sum.memory, {Expr(j)}, cast(load(sum.a, {kAt}), dtype), {}, StoreMode::Add);
    return sum.check({sum.filled(float_imm(0, dtype)), sum.updates(), sum.merged()}).verdict;
  };
  EXPECT_EQ(found(kFloat32), Verdict::Proved);
  EXPECT_NE(found(kHalf), Verdict::Proved);
}

/// Iterations have a sum each, and would share a partial result of it.
TEST(Reductions, WhatIterationsHaveForThemselvesTheyDoNotShare) {
  const BufferRef a = param("A", kInt32, {8}), s = make_buffer("S", kInt32, MemoryScope::Local, {idx(1)}),
                  memory = shared("W", kInt32, {1});
  const Stmt was = store(s, {idx(0)}, load(a, {Expr(j)}), {}, StoreMode::Add);
  const Stmt now = store(memory, {idx(0)}, load(a, {Expr(j)}), {}, StoreMode::Add);
  const Stmt before = loop(j, 8, was, LoopKind::Parallel);
  const Stmt after =
      seq({alloc(memory), store(memory, {idx(0)}, int_imm(0, kInt32)), loop(j, 8, now, LoopKind::Parallel),
           store(s, {idx(0)}, load(memory, {idx(0)}), {}, StoreMode::Add)});
  const FunctionRef f = function("f", {a}, seq({alloc(s), before}));
  const Legality found = check_rewrite(*f, before, after, {{now.get(), 4, 1, {}}}, ExactEngine());
  EXPECT_EQ(found.fault, RewriteFault::Shared) << text_of(found);
}

TEST(Reductions, TheyMayLiveForAnIterationOrRunInAParallelLoop) {
  const Sum sum;
  const Legality inside =
      sum.check_region(loop(o, 2, seq({alloc(sum.memory), sum.filled(), loop(j, 4, sum.now), sum.merged()})));
  EXPECT_EQ(inside.verdict, Verdict::Proved) << text_of(inside);
  const Legality parallel = sum.check({sum.filled(), sum.nest(sum.now, {}, LoopKind::Parallel), sum.merged()});
  EXPECT_EQ(parallel.verdict, Verdict::Proved) << text_of(parallel);
  const Legality refilled = sum.check({sum.nest(sum.now), sum.filled(), sum.merged()});
  EXPECT_EQ(refilled.verdict, Verdict::Refuted);
}

TEST(Reductions, OneCellForAllIterationsOfAParallelLoopIsShared) {
  Sum sum;
  sum.now = store(sum.memory, {idx(0)}, load(sum.a, {kAt}), {}, StoreMode::Add);
  EXPECT_EQ(sum.check({sum.filled(), sum.updates(), sum.merged()}).verdict, Verdict::Proved);
  const Legality found = sum.check({sum.filled(), sum.nest(sum.now, {}, LoopKind::Parallel), sum.merged()});
  EXPECT_EQ(found.fault, RewriteFault::Shared);
  EXPECT_EQ(text_of(found), "'W[0]' at o = 0, j = 0 and 'W[0]' at o = 0, j = 1 would touch one element in iterations "
                            "that have no order");
}

TEST(Reductions, MergesInAParallelLoopAreAtOnce) {
  const Sum sum;
  const Stmt merge = store(sum.c, {idx(0)}, load(sum.memory, {Expr(v)}), {}, StoreMode::Add);
  const Legality found = sum.check({sum.filled(), sum.updates(), loop(v, 4, merge, LoopKind::Parallel)});
  EXPECT_EQ(found.fault, RewriteFault::Shared);
}

TEST(Reductions, EachIsMergedOnce) {
  const Sum sum;
  const Legality missing = sum.check({sum.filled(), sum.updates()});
  EXPECT_EQ(missing.verdict, Verdict::Refuted);
  const Legality few = sum.check({sum.filled(), sum.updates(), sum.merged(idx(0), 3)});
  EXPECT_EQ(few.fault, RewriteFault::Merged);
  EXPECT_EQ(text_of(few),
            "what 'W[j]' at o = 0, j = 3 adds would not be merged next, into the element that it updates");
  const Legality twice = sum.check({sum.filled(), sum.updates(), sum.merged(), sum.merged()});
  EXPECT_EQ(twice.fault, RewriteFault::Filled);
  EXPECT_EQ(text_of(twice), "'W[v]' at v = 0 would use a partial result that does not begin with the identity of its "
                            "operator");
  const Legality again = sum.check({sum.filled(), sum.updates(), sum.merged(), sum.filled(), sum.merged()});
  EXPECT_EQ(again.verdict, Verdict::Proved) << text_of(again);  // of the identity
}

TEST(Reductions, EachIsMergedIntoItsElementBehindItsLastUpdate) {
  const Sum sum;
  EXPECT_EQ(sum.check({sum.filled(), sum.updates(), sum.merged(idx(1))}).fault, RewriteFault::Merged);
  EXPECT_EQ(sum.check({sum.filled(), sum.merged(), sum.updates()}).fault, RewriteFault::Filled);
  EXPECT_NE(sum.check({sum.filled(), sum.nest(sum.now, {sum.merged()})}).verdict, Verdict::Proved);
  const Stmt in_first = if_then(less(Expr(o), idx(1)), sum.merged());
  const Legality early = sum.check({sum.filled(), sum.nest(sum.now, {in_first})});
  EXPECT_NE(early.verdict, Verdict::Proved);
  const Legality refilled = sum.check({sum.filled(), sum.nest(sum.now, {sum.merged(), sum.filled()})});
  EXPECT_EQ(refilled.verdict, Verdict::Proved) << text_of(refilled);
  const Stmt also = store(sum.c, {idx(1)}, load(sum.memory, {idx(0)}), {}, StoreMode::Mul);
  EXPECT_NE(sum.check({sum.filled(), sum.updates(), sum.merged(), also}).verdict, Verdict::Proved);
}

TEST(Reductions, EachBeginsWithTheIdentity) {
  const Sum sum;
  EXPECT_EQ(sum.check({sum.updates(), sum.merged()}).fault, RewriteFault::Filled);
  EXPECT_EQ(sum.check({sum.filled(sum.number(0), 3), sum.updates(), sum.merged()}).fault, RewriteFault::Filled);
  EXPECT_EQ(sum.check({sum.updates(), sum.filled(), sum.merged()}).fault, RewriteFault::Filled);
  EXPECT_EQ(sum.check({sum.filled(), sum.nest(sum.now, {sum.filled()}), sum.merged()}).fault, RewriteFault::Merged);
  const Legality one = sum.check({sum.filled(sum.number(1)), sum.updates(), sum.merged()});
  EXPECT_EQ(one.verdict, Verdict::Unknown);
  EXPECT_EQ(one.reason, "'W[w]' is filled with another value than the identity");
}

TEST(Reductions, OneMayBeginWithTheValueOfItsFirstUpdate) {
  Sum sum;
  sum.now = store(sum.memory, {Expr(j)}, load(sum.a, {kAt}));
  const Stmt all = loop(j, 4, sum.now);
  const auto in_turn = [&](std::vector<Stmt> stmts) {
    stmts.insert(stmts.begin(), alloc(sum.memory));
    return sum.check_region(loop(o, 2, seq(stmts)));
  };
  for (const Legality& found : {in_turn({all, sum.merged()}), in_turn({sum.filled(), all, sum.merged()})}) {
    EXPECT_EQ(found.verdict, Verdict::Proved) << text_of(found);
    EXPECT_TRUE(found.reassociates);
  }
  EXPECT_EQ(sum.check({sum.updates(), sum.merged()}).fault, RewriteFault::Merged);  // the second one overwrites it
  EXPECT_EQ(sum.check({sum.filled(), sum.updates(), sum.merged()}).fault, RewriteFault::Merged);
  EXPECT_EQ(in_turn({sum.merged(), all}).fault, RewriteFault::Merged);
  EXPECT_EQ(in_turn({all, sum.filled(), sum.merged()}).fault, RewriteFault::Merged);
  EXPECT_EQ(in_turn({all, sum.merged(), sum.merged()}).fault, RewriteFault::Filled);
  EXPECT_EQ(in_turn({all, sum.merged(idx(0), 3)}).fault, RewriteFault::Merged);
  EXPECT_EQ(in_turn({all, sum.merged(idx(1))}).fault, RewriteFault::Merged);
  sum.now = store(sum.memory, {idx(0)}, load(sum.a, {kAt}));
  EXPECT_EQ(in_turn({loop(j, 4, sum.now), sum.merged(idx(0), 1)}).fault, RewriteFault::Merged);
  sum.now = store(sum.memory, {Expr(j)}, load(sum.a, {kAt}) + sum.number(1));
  EXPECT_NE(in_turn({loop(j, 4, sum.now), sum.merged()}).verdict, Verdict::Proved);
}

TEST(Reductions, EachOperatorHasItsIdentity) {
  for (const StoreMode mode : {StoreMode::Mul, StoreMode::Max, StoreMode::Min}) {
    const Sum sum{kFloat32, mode};
    EXPECT_EQ(sum.check({sum.filled(), sum.updates(), sum.merged()}).verdict, Verdict::Unknown);
    const Expr identity = mode == StoreMode::Mul ? f32(1) : extreme_imm(kFloat32, mode == StoreMode::Max);
    const Legality found = sum.check({sum.filled(identity), sum.updates(), sum.merged()});
    EXPECT_EQ(found.verdict, Verdict::Proved) << text_of(found);
  }
}

TEST(Reductions, MergesAreOfTheOperatorOfTheUpdates) {
  Sum sum;
  const Stmt by_maximum = loop(v, 4, store(sum.c, {idx(0)}, load(sum.memory, {Expr(v)}), {}, StoreMode::Max));
  EXPECT_NE(sum.check({sum.filled(), sum.updates(), by_maximum}).verdict, Verdict::Proved);
  sum.now = store(sum.memory, {Expr(j)}, load(sum.a, {kAt}), {}, StoreMode::Max);
  EXPECT_NE(sum.check({sum.filled(), sum.updates(), sum.merged()}).verdict, Verdict::Proved);
}

TEST(Reductions, OthersOfTheElementKeepTheirOrderWithTheMerge) {
  Sum sum;
  sum.between = {store(sum.b, {Expr(o)}, load(sum.c, {idx(0)}))};
  const Legality late = sum.check({sum.filled(), sum.updates(), sum.merged()});
  EXPECT_EQ(late.fault, RewriteFault::Turned);
  EXPECT_EQ(text_of(late), "'C[0]' at o = 0 would run before 'C[0]' at o = 0, j = 0, on which it depends");
  const Legality inside = sum.check_region(
      loop(o, 2, seq({alloc(sum.memory), sum.filled(), loop(j, 4, sum.now), sum.merged(), sum.between[0]})));
  EXPECT_EQ(inside.verdict, Verdict::Proved) << text_of(inside);
  sum.between = {store(sum.b, {Expr(o)}, load(sum.c, {idx(1)}))};
  const Legality other = sum.check({sum.filled(), sum.updates(), sum.merged()});
  EXPECT_EQ(other.verdict, Verdict::Proved) << text_of(other);
  sum.between = {store(sum.c, {idx(0)}, sum.number(3), {}, StoreMode::Max)};
  EXPECT_EQ(sum.check({sum.filled(), sum.updates(), sum.merged()}).fault, RewriteFault::Turned);
  sum.between = {store(sum.c, {idx(0)}, sum.number(3))};
  EXPECT_EQ(sum.check({sum.filled(), sum.updates(), sum.merged()}).fault, RewriteFault::Turned);
  sum.between = {store(sum.c, {idx(0)}, sum.number(3), {}, StoreMode::Add)};
  const Legality alike = sum.check({sum.filled(), sum.updates(), sum.merged()});
  EXPECT_EQ(alike.verdict, Verdict::Proved) << text_of(alike);
}

TEST(Reductions, PartialResultsAreReadByNobodyElse) {
  Sum sum;
  sum.between = {store(sum.b, {Expr(o)}, sum.number(1))};
  const Stmt reads = store(sum.b, {Expr(o)}, load(sum.memory, {idx(0)}));
  Sum spied = sum;
  spied.between = {reads};
  EXPECT_NE(spied.check_region(seq({alloc(sum.memory), sum.filled(), spied.updates(), sum.merged()})).verdict,
            Verdict::Proved);
  sum.now = store(sum.memory, {Expr(j)}, load(sum.memory, {idx(0)}), {}, StoreMode::Add);
  EXPECT_NE(sum.check({sum.filled(), sum.updates(), sum.merged()}).verdict, Verdict::Proved);
}

TEST(Reductions, APlainSumOfIntegersIsOneAndOfFloatsIsNone) {
  for (const DType dtype : {kInt32, kFloat32}) {
    Sum sum{dtype};
    sum.was = store(sum.c, {idx(0)}, load(sum.c, {idx(0)}) + load(sum.a, {kAt}));
    const Legality found = sum.check({sum.filled(), sum.updates(), sum.merged()});
    EXPECT_EQ(found.verdict, dtype == kInt32 ? Verdict::Proved : Verdict::Unknown) << text_of(found);
    sum.between = {store(sum.b, {Expr(o)}, load(sum.c, {idx(0)}))};
    EXPECT_NE(sum.check({sum.filled(), sum.updates(), sum.merged()}).verdict, Verdict::Proved);
  }
}

TEST(Reductions, MergesStayInsideOfTheTensorAndOfTheIteration) {
  Sum sum;
  const Stmt wider = loop(v, 4, store(sum.c, {Expr(v)}, load(sum.memory, {Expr(v)}), {}, StoreMode::Add));
  const Legality outside = sum.check({sum.filled(), sum.updates(), sum.merged(), sum.filled(), wider});
  EXPECT_EQ(outside.fault, RewriteFault::Outside);
  EXPECT_EQ(text_of(outside), "'C[2]' would be updated, and may not be now");
}

}  // namespace
}  // namespace helve::testing
