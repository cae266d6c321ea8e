// What a new region evaluates that may fail: covered by what the old one evaluates, by what stands around it, or proved
// not to fail. Elements of I name elements of A, and may be any numbers.
#include <gtest/gtest.h>

#include "helve/ir/tensor/visit.h"
#include "helve/schedule/legality.h"
#include "ir/tensor/programs/build_ir.h"
#include "visits.h"

namespace helve::testing {
namespace {

const VarRef i = make_var("i"), j = make_var("j"), n = make_var("n"), m = make_var("m");
const BufferRef a = param("A", kInt32, {8}), b = param("B", kInt32, {8}), indices = param("I", kInt32, {8});

Expr at(const BufferRef& buffer, const Expr& index) { return cast(load(buffer, {index}), index->dtype); }
Expr named(const Expr& index) { return at(a, at(indices, index)); }
Stmt loop(const VarRef& var, const Expr& extent, const Stmt& body) {
  return for_loop(LoopKind::Serial, {var}, {idx(0)}, {extent}, body);
}
Stmt when(const Expr& value, const Stmt& body) { return if_then(less(idx(0), value), body); }

/// The visits of two statements that are one, or of which one stands for the other.
struct Pair {
  Stmt now, was;
  std::vector<std::pair<VarRef, Expr>> values = {};
};

/// What the check says of a region in a function of n and m; `around`: the body with the region in it.
std::string said(
    const Stmt& before, const Stmt& after, const std::vector<Pair>& pairs,
    const std::function<Stmt(Stmt)>& around = [](Stmt s) { return s; }) {
  Ref<Function> f = make_ref<Function>(*function("f", {a, b, indices}, around(before)));
  f->params.emplace_back(n);
  f->params.emplace_back(m);
  std::vector<Origin> origins;
  for (const Pair& each : pairs) {
    origins.push_back({each.now.get(), visit_of(after, each.now.get()), visit_of(before, each.was.get()), each.values});
  }
  return text_of(check_rewrite(*f, before, after, origins, ExactEngine()));
}

const Stmt kStore = store(b, {Expr(i)}, load(b, {Expr(i)}) + int_imm(1, kInt32));
const std::string kDivides = "'8 // n' would be computed where it is not now, and may divide by 0";
const Expr kQuotient = floor_div(idx(8), Expr(n));

TEST(Evaluations, AConditionLeavesALoopThatRuns) {
  const auto unswitched = [](const Expr& extent, const Expr& value) {
    const Stmt was = when(value, kStore), now = when(value, loop(i, extent, kStore));
    return said(loop(i, extent, was), now, {{now, was}, {kStore, kStore}});
  };
  EXPECT_EQ(unswitched(idx(8), kQuotient), "");
  EXPECT_EQ(unswitched(min(Expr(n), idx(8)), kQuotient), kDivides);
  EXPECT_EQ(unswitched(idx(8), named(idx(0))), "");
  EXPECT_NE(unswitched(min(Expr(n), idx(8)), named(idx(0))), "");
  EXPECT_EQ(unswitched(min(Expr(n), idx(8)), floor_div(idx(8), max(Expr(n), idx(1)))), "");
  EXPECT_EQ(unswitched(min(Expr(n), idx(8)), at(a, idx(7))), "");
}

TEST(Evaluations, WhatWaitsForAConditionInsideIsGuardedByIt) {
  const Expr some = less(idx(0), Expr(n)), safe = logical_and(some, less(idx(2), kQuotient));
  const Expr chosen = apply(Op::Select, {some, kQuotient, idx(1)});
  const Expr wrong = apply(Op::Select, {some, idx(1), kQuotient});
  const Expr extent = min(Expr(m), idx(8));
  const auto unswitched = [&](const Expr& condition) {
    const Stmt was = if_then(condition, kStore), now = if_then(condition, loop(i, extent, kStore));
    return said(loop(i, extent, was), now, {{now, was}, {kStore, kStore}});
  };
  EXPECT_EQ(unswitched(safe), "");
  EXPECT_EQ(unswitched(less(idx(0), chosen)), "");
  EXPECT_EQ(unswitched(less(idx(0), wrong)), kDivides);
}

/// What the old region evaluates only under a condition does not cover what waits for nothing.
TEST(Evaluations, AGuardIsNoneElsewhere) {
  const Stmt was = if_then(logical_and(less(idx(0), Expr(m)), less(idx(0), kQuotient)), kStore);
  const Stmt now = if_then(logical_and(less(idx(0), kQuotient), less(idx(0), Expr(m))), kStore);
  EXPECT_EQ(said(loop(i, idx(8), was), loop(i, idx(8), now), {{kStore, kStore}}), kDivides);
  EXPECT_EQ(said(loop(i, idx(8), was), loop(i, idx(8), was), {{kStore, kStore}}), "");
}

TEST(Evaluations, WhatStandsAroundHasEvaluatedIt) {
  const Stmt stored = store(b, {idx(0)}, int_imm(1, kInt32));
  const Stmt was = loop(j, kQuotient, stored), now = loop(j, kQuotient, when(kQuotient, stored));
  EXPECT_EQ(said(was, now, {{stored, stored}}), "");
}

/// The bound of a loop around the region has read what it names, unless that is written in the loop.
TEST(Evaluations, MemoryMayChangeBetweenTheLoopAroundAndTheRegion) {
  const Expr extent = min(Expr(n), idx(8));
  const Stmt was = when(named(idx(0)), kStore), now = when(named(idx(0)), loop(i, extent, kStore));
  for (const bool written : {false, true}) {
    const auto around = [&](Stmt region) {
      const Stmt other = store(written ? indices : b, {idx(0)}, int_imm(9, kInt32));
      return loop(j, named(idx(0)), seq({std::move(region), other}));
    };
    const std::string found = said(loop(i, extent, was), now, {{now, was}, {kStore, kStore}}, around);
    EXPECT_EQ(found.empty(), !written) << found;
  }
}

/// A branch around that waits for a condition of its own need not have evaluated what stands behind it.
TEST(Evaluations, WhatStandsAroundEvaluatesWhatWaitsForNothing) {
  const Expr some = less(idx(0), Expr(n)), large = less(idx(2), kQuotient), extent = min(Expr(m), idx(8));
  const Stmt was = when(kQuotient, kStore), now = when(kQuotient, loop(i, extent, kStore));
  for (const bool guarded : {false, true}) {
    const auto around = [&](Stmt region) {
      return if_then(guarded ? logical_and(some, large) : large, store(b, {idx(0)}, int_imm(9, kInt32)),
                     std::move(region));
    };
    EXPECT_EQ(said(loop(i, extent, was), now, {{now, was}, {kStore, kStore}}, around), guarded ? kDivides : "");
  }
}

/// A condition on memory that changes is one statement in both regions, or it says nothing.
TEST(Evaluations, UnderTheConditionThatItHad) {
  const Stmt inner = when(kQuotient, kStore);
  const Stmt was = when(at(b, Expr(i)), inner), now = when(at(b, Expr(i)), inner);
  EXPECT_EQ(said(loop(i, idx(8), was), loop(i, idx(8), now), {{now, was}, {inner, inner}, {kStore, kStore}}), "");
  const Stmt out = when(kQuotient, when(at(b, Expr(i)), kStore));
  EXPECT_EQ(said(loop(i, idx(8), was), loop(i, idx(8), out), {{as<If>(out)->then_body, was}, {kStore, kStore}}),
            kDivides);
}

TEST(Evaluations, LoopsCountedOtherwise) {
  const Expr back = idx(7) - Expr(j);
  const Stmt was = when(named(Expr(i)), kStore), now = substitute(was, {{i.get(), back}});
  const Stmt stored = as<If>(now)->then_body;
  const auto found = [&](int64_t extent) {
    return said(loop(i, idx(8), was), loop(j, idx(extent), if_then(less(Expr(j), idx(8)), now)),
                {{now, was, {{i, back}}}, {stored, kStore, {{i, back}}}});
  };
  EXPECT_EQ(found(8), "");
  EXPECT_EQ(found(9), "");
}

}  // namespace
}  // namespace helve::testing
