// What counts as one statement of a region, what changes nothing, and whose order to others is observable.
#include "helve/analysis/region_statements.h"

#include <gtest/gtest.h>

#include <set>

#include "helve/analysis/dependence.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

const BufferRef kA = param("A", kInt32, {64}), kB = param("B", kInt32, {64});

Stmt put(const BufferRef& to, const Expr& at, int64_t value = 1) { return store(to, {at}, int_imm(value, kInt32)); }

/// The function's body is the region.
Dependences of(const Stmt& region) {
  static std::vector<FunctionRef> kept;
  kept.push_back(function("f", {kA, kB}, region));
  return dependences(*kept.back(), region, ExactEngine());
}

Stmt threads(const std::function<Stmt(const Expr& tx)>& body) {
  const VarRef tx = make_var("tx");
  return for_loop(LoopKind::Thread, {tx}, {idx(0)}, {idx(32)}, body(Expr(tx)));
}

/// "whole" for one statement, "parts" for its two stores.
std::string taken(const Stmt& region) {
  const size_t count = of(region).statements.size();
  return count == 1 ? "whole" : count == 2 ? "parts" : std::to_string(count);
}

TEST(RegionStatements, ThreadsThatWorkTogetherAreOne) {
  const BufferRef f = make_buffer("F", kInt32, MemoryScope::Fragment, extents({32, 4}));
  EXPECT_EQ(taken(threads([](const Expr& tx) { return seq({put(kA, tx), put(kB, tx)}); })), "parts");
  EXPECT_EQ(taken(threads(
                [](const Expr& tx) { return seq({put(kA, tx), tile_op(TileOpcode::SyncThreads, {}), put(kB, tx)}); })),
            "whole");
  for (const bool own : {true, false}) {
    const auto body = [&](const Expr& tx) {
      const Expr lane = own ? tx : idx(31) - tx;
      return seq({put(kA, tx), store(kB, {tx}, load(f, {lane, idx(0)}))});
    };
    EXPECT_EQ(taken(threads(body)), own ? "parts" : "whole");
    const auto written = [&](const Expr& tx) {
      return seq({put(kA, tx), store(f, {own ? tx : idx(31) - tx, idx(1)}, int_imm(1, kInt32))});
    };
    EXPECT_EQ(taken(threads(written)), own ? "parts" : "whole");
  }
}

TEST(RegionStatements, ALoopThatRunsNobodyKnowsHowOftenIsOne) {
  const Expr condition = less(load(kA, {idx(0)}), int_imm(9, kInt32));
  EXPECT_EQ(taken(while_loop(condition, seq({put(kA, idx(0), 9), put(kB, idx(0))}))), "whole");
}

TEST(RegionStatements, AConditionCountsWhereItReadsWhatTheRegionWrites) {
  for (const BufferRef& read : {kA, kB}) {
    const Stmt body = if_then(less(load(read, {idx(0)}), int_imm(9, kInt32)), put(kA, idx(1)));
    const Dependences found = of(body);
    ASSERT_EQ(found.statements.size(), read == kA ? 2u : 1u);
    EXPECT_EQ(found.statements[0].pure, read == kA);
    EXPECT_FALSE(found.statements.back().pure);
  }
}

/// The statements of which the order to all others is observable, by their numbers.
std::set<size_t> ordering(const Dependences& found) {
  std::set<size_t> out;
  for (size_t s = 0; s < found.statements.size(); ++s) {
    if (found.statements[s].orders_all) out.insert(s);
  }
  return out;
}

TEST(RegionStatements, BarriersWaitsAndReportsKeepTheirPlace) {
  const std::vector<Stmt> all = {tile_op(TileOpcode::SyncThreads, {}), tile_op(TileOpcode::WaitAsync, {int64_t{0}}),
                                 report(false, "here", {}, {}, 0)};
  for (const Stmt& each : all) EXPECT_EQ(ordering(of(seq({put(kA, idx(0)), each}))), (std::set<size_t>{1}));
  EXPECT_TRUE(ordering(of(seq({put(kA, idx(0)), put(kB, idx(0))}))).empty());
}

TEST(RegionStatements, WhatBarriersCountAndWhatCoresDoTogetherKeepsItsPlace) {
  const BufferRef full = shared("full", {TypeCode::UInt, 64}, {2}), x = shared("X", kInt32, {64});
  const auto bulk = [&](bool counted) {
    std::vector<TileOperand> operands = {whole_region(kA), whole_region(x)};
    if (counted) operands.insert(operands.end(), {false, false, whole_region(full), false});
    return tile_op(TileOpcode::CpAsyncBulk, std::move(operands));
  };
  const Stmt sent =
      tile_op(TileOpcode::CommBroadcast, {whole_region(kA), whole_region(x), int64_t{0}, std::string("all")});
  const auto ordered = [&](const Stmt& s) { return ordering(of(seq({alloc(full), alloc(x), s, put(kB, idx(0))}))); };
  EXPECT_TRUE(ordered(bulk(false)).empty());
  EXPECT_EQ(ordered(bulk(true)), (std::set<size_t>{0}));
  EXPECT_EQ(ordered(sent), (std::set<size_t>{0}));
}

TEST(RegionStatements, ThreadsAroundTheRegionMeetBetweenItsStatements) {
  for (const bool together : {true, false}) {
    Stmt inner;
    const Stmt loop = threads([&](const Expr& tx) {
      inner = seq({put(kA, tx), put(kB, tx)});
      return together ? seq({inner, tile_op(TileOpcode::SyncThreads, {}), put(kA, tx, 2)})
                      : seq({inner, put(kA, tx, 2)});
    });
    const FunctionRef f = function("f", {kA, kB}, loop);
    const Stmt& first = as<Seq>(as<For>(f->body)->body)->stmts[0];
    const Dependences found = dependences(*f, first, ExactEngine());
    EXPECT_EQ(ordering(found).size(), together ? found.statements.size() : 0u);
  }
}

}  // namespace
}  // namespace helve::testing
