// Conditions of the check of values (legality/values.cc), each with a program that no other one refuses.
#include <gtest/gtest.h>

#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/visit.h"
#include "helve/schedule/legality.h"
#include "ir/tensor/programs/build_ir.h"
#include "visits.h"

namespace helve::testing {
namespace {

const BufferRef kA = param("A", kInt32, {8}), kB = param("B", kInt32, {8}), kC = param("C", kInt32, {8});
const BufferRef kW = shared("W", kInt32, {8});
const VarRef kI = make_var("i"), kX = make_var("x");
const Expr kOne = int_imm(1, kInt32);

Stmt loop(const VarRef& var, const Stmt& body, LoopKind kind = LoopKind::Serial) {
  return for_loop(kind, {var}, {idx(0)}, {idx(8)}, body);
}
/// `for x in 8: to[x] = from[x]`, without an origin.
Stmt copied(const BufferRef& to, const BufferRef& from) { return loop(kX, store(to, {Expr(kX)}, load(from, {kX}))); }

/// Of `after` in the place of the region, with pairs of a new statement and the one that it comes from.
Legality check(const FunctionRef& f, const Stmt& region, const Stmt& after,
               const std::vector<std::pair<Stmt, Stmt>>& moved, const std::vector<BufferRef>& by_value = {}) {
  std::vector<Origin> origins;
  for (const auto& [now, was] : moved)
    origins.push_back({now.get(), visit_of(after, now.get()), visit_of(region, was.get()), {}});
  return check_rewrite(*f, region, after, origins, ExactEngine(), by_value);
}

TEST(SeenValues, ASubscriptThatIsReadFromStagedMemory) {
  const Stmt was = store(kB, {Expr(kI)}, load(kC, {cast(load(kA, {kI}), kIndex)})), region = loop(kI, was);
  const FunctionRef f = function("f", {kA, kB, kC}, region);
  const Legality same = check(f, region, region, {{was, was}}, {kA});
  EXPECT_EQ(same.verdict, Verdict::Proved) << text_of(same);
  const BufferRef other = param("D", kInt32, {8});
  const Stmt after = seq({alloc(kW), copied(kW, kA), copied(kA, other), region, copied(kA, kW)});
  const Legality found = check(function("f", {kA, kB, kC, other}, region), region, after, {{was, was}});
  EXPECT_EQ(found.fault, RewriteFault::Value) << text_of(found);
}

TEST(SeenValues, ACopyOfMoreThanTheStatementTouches) {
  const Stmt was = store(kA, {Expr(kI)}, load(kA, {kI}) + kOne), now = store(kW, {Expr(kI)}, load(kW, {kI}) + kOne);
  const Stmt after = seq({alloc(kW), copied(kW, kA), now, copied(kA, kW)});
  const auto in_loop = [&](LoopKind kind) {
    return check(function("f", {kA}, loop(kI, was, kind)), was, after, {{now, was}});
  };
  const Legality serial = in_loop(LoopKind::Serial);
  EXPECT_EQ(serial.verdict, Verdict::Proved) << text_of(serial);
  const Legality parallel = in_loop(LoopKind::Parallel);
  EXPECT_EQ(parallel.verdict, Verdict::Unknown);
  EXPECT_EQ(parallel.reason,
            "the copy touches elements of 'A' that the statement does not, and iterations of a loop around it have no "
            "order");
}

TEST(SeenValues, ACopyOfWhatOtherIterationsWrite) {
  const Stmt written = store(kA, {Expr(kI)}, kOne), was = store(kB, {Expr(kI)}, load(kA, {kI}));
  const Stmt now = store(kB, {Expr(kI)}, load(kW, {kI})), after = seq({alloc(kW), copied(kW, kA), now});
  const auto in_loop = [&](const Stmt& beside) {
    const FunctionRef f = function("f", {kA, kB, kC}, loop(kI, seq({beside, was}), LoopKind::Parallel));
    return check(f, was, after, {{now, was}});
  };
  EXPECT_EQ(in_loop(written).verdict, Verdict::Unknown);
  const Legality constant = in_loop(store(kC, {Expr(kI)}, kOne));
  EXPECT_EQ(constant.verdict, Verdict::Proved) << text_of(constant);
}

TEST(SeenValues, ACopyOfMemoryThatMayBeShared) {
  const Stmt written = store(kB, {Expr(kI)}, kOne), was = store(kC, {Expr(kI)}, load(kA, {idx(0)}));
  const Stmt now = store(kC, {Expr(kI)}, load(kW, {idx(0)})), region = loop(kI, seq({written, was}));
  const Stmt after = seq({alloc(kW), copied(kW, kA), loop(kI, seq({written, now}))});
  const FunctionRef f = function("f", {kA, kB, kC}, region);
  const Legality apart = check(f, region, after, {{written, written}, {now, was}});
  EXPECT_EQ(apart.verdict, Verdict::Proved) << text_of(apart);
  Ref<Function> aliased = make_ref<Function>(*f);
  aliased->may_alias = {MayAlias{{kA, kB}, {}, {}}};
  const Legality found = check(FunctionRef(aliased), region, after, {{written, written}, {now, was}});
  EXPECT_EQ(found.verdict, Verdict::Unknown);
  EXPECT_EQ(found.reason, "'B' and 'A' may share memory");
}

TEST(SeenValues, WhatALoopOfUnknownLengthReads) {
  const Stmt body = store(kB, {Expr(kI)}, load(kB, {kI}) + kOne);
  const Stmt was = while_loop(less(load(kB, {kI}), load(kA, {kI})), body), region = loop(kI, was);
  const FunctionRef f = function("f", {kA, kB, kC}, region);
  const Stmt after = seq({alloc(kW), copied(kW, kA), copied(kA, kC), region, copied(kA, kW)});
  const Legality found = check(f, region, after, {{was, was}});
  EXPECT_EQ(found.verdict, Verdict::Unknown);
  EXPECT_EQ(found.reason, "a read of the statement is none of its accesses");
}

TEST(SeenValues, ACopyIntoMemoryThatStandsForOther) {
  const BufferRef y = shared("Y", kInt32, {8});
  const Stmt fill = store(y, {idx(0)}, kOne), was = store(kB, {idx(0)}, load(y, {idx(0)}));
  const Stmt region = seq({alloc(y), fill, was});
  const FunctionRef f = function("f", {kA, kB}, region);
  const Stmt filled = store(kW, {idx(0)}, kOne), now = store(kB, {idx(0)}, load(kW, {idx(0)}));
  const std::vector<std::pair<Stmt, Stmt>> moved = {{filled, fill}, {now, was}};
  const Legality same = check(f, region, seq({alloc(kW), filled, now}), moved);
  EXPECT_EQ(same.verdict, Verdict::Proved) << text_of(same);
  const Legality found = check(f, region, seq({alloc(kW), filled, copied(kW, kA), now}), moved);
  EXPECT_EQ(found.verdict, Verdict::Unknown);
  EXPECT_EQ(found.reason, "a read of the statement is none of its accesses");
}

TEST(SeenValues, OneMemoryInThePlaceOfTwo) {
  const BufferRef x = shared("X", kInt32, {8}), y = shared("Y", kInt32, {8});
  const auto parts = [&](const BufferRef& first, const BufferRef& second) {
    return std::vector<Stmt>{store(first, {idx(0)}, kOne), store(kA, {idx(0)}, load(first, {idx(0)})),
                             store(second, {idx(0)}, kOne + kOne), store(kB, {idx(0)}, load(second, {idx(0)}))};
  };
  const std::vector<Stmt> was = parts(x, y), now = parts(kW, kW);
  const Stmt region = seq({alloc(x), alloc(y), was[0], was[1], was[2], was[3]});
  const FunctionRef f = function("f", {kA, kB}, region);
  const auto found = [&](const std::vector<size_t>& order, const std::vector<BufferRef>& by_value) {
    std::vector<Stmt> after{alloc(kW)};
    for (const size_t n : order) after.push_back(now[n]);
    return check(f, region, seq(after), {{now[0], was[0]}, {now[1], was[1]}, {now[2], was[2]}, {now[3], was[3]}},
                 by_value);
  };
  EXPECT_EQ(found({0, 1, 2, 3}, {}).verdict, Verdict::Unknown) << "nobody judges what W holds";
  EXPECT_EQ(found({0, 2, 1, 3}, {}).verdict, Verdict::Unknown);
  EXPECT_EQ(found({0, 2, 1, 3}, {kW, y}).verdict, Verdict::Unknown);
  const Legality values = found({0, 1, 2, 3}, {kW, x, y, kA, kB});
  EXPECT_EQ(values.verdict, Verdict::Proved) << text_of(values);
  EXPECT_EQ(found({0, 2, 1, 3}, {kW, x, y, kA, kB}).fault, RewriteFault::Value);
}

Expr selected(const Expr& condition, const Expr& yes, const Expr& no) {
  return apply(Op::Select, {condition, yes, no});
}

TEST(SeenValues, OneLoadAtSeveralPlacesAndSeveralInItsPlace) {
  const Expr old = load(kA, {kI}), one = load(kW, {kI}), other = load(kW, {kI}), shifted = load(kW, {idx(7)});
  const Expr early = less(Expr(kI), idx(4)), zero = int_imm(0, kInt32);
  const auto sum = [&](const Expr& first, const Expr& second) {
    return store(kB, {Expr(kI)}, selected(early, first, zero) + selected(early, zero, second));
  };
  const Stmt was = sum(old, old), region = loop(kI, was);
  const FunctionRef f = function("f", {kA, kB}, region);
  const auto found = [&](const Expr& first, const Expr& second) {
    const Stmt now = sum(first, second);
    return check(f, region, seq({alloc(kW), copied(kW, kA), loop(kI, now)}), {{now, was}});
  };
  EXPECT_EQ(found(one, one).verdict, Verdict::Proved);
  EXPECT_EQ(found(one, other).verdict, Verdict::Proved);
  EXPECT_EQ(found(one, shifted).fault, RewriteFault::Value);
  EXPECT_EQ(found(shifted, one).fault, RewriteFault::Value);
}

/// Old loads p r p r where i = 0, 3, 1, 2, and new ones q q s s in their place.
TEST(SeenValues, LoadsThatStandForEachOtherInTurns) {
  const Expr p = load(kA, {idx(0)}), r = load(kA, {idx(1)});
  const auto chosen = [&](const Expr& first, const Expr& fourth, const Expr& second, const Expr& third) {
    const auto at = [&](int64_t n) { return apply(Op::Eq, {Expr(kI), idx(n)}); };
    return store(kB, {Expr(kI)}, selected(at(0), first, selected(at(3), fourth, selected(at(1), second, third))));
  };
  const Stmt was = chosen(p, r, p, r), region = for_loop(LoopKind::Serial, {kI}, {idx(0)}, {idx(4)}, was);
  const FunctionRef f = function("f", {kA, kB}, region);
  const Expr q = load(kW, {idx(0)}), s = load(kW, {idx(1)});
  const Stmt now = chosen(q, q, s, s);
  const Stmt after = seq({alloc(kW), copied(kW, kA), for_loop(LoopKind::Serial, {kI}, {idx(0)}, {idx(4)}, now)});
  const Legality found = check(f, region, after, {{now, was}});
  EXPECT_EQ(found.verdict, Verdict::Unknown) << "A[1] where i is 1";
  EXPECT_EQ(found.reason, "a load stands for several other ones");
}

}  // namespace
}  // namespace helve::testing
