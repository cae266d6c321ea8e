// Copies that a kernel certainly leaves unfinished, counted on every kind of control flow, and what an iteration may
// begin.
#include <gtest/gtest.h>

#include "helve/ir/tensor/verify.h"
#include "helve/support/diagnostic.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

const BufferRef a = param("A", kFloat32, {8, 8}), n = param("n", kInt32, {1}), x = shared("X", kFloat32, {8});

Span line(int number) { return {intern_file("k.py"), number, 1, number, 9}; }
Stmt copy(int at) {
  return tile_op(TileOpcode::CopyAsync, {box(a, {{idx(0), -1}, {idx(0), 8}}), whole_region(x), f32(0)}, line(at));
}
Stmt commit(int at) { return tile_op(TileOpcode::CommitAsync, {}, line(at)); }
Stmt wait(int64_t pending = 0) { return tile_op(TileOpcode::WaitAsync, {pending}); }
Stmt loop(Expr extent, std::vector<Stmt> body, LoopKind kind = LoopKind::Serial) {
  return for_loop(kind, make_var("i"), std::move(extent), seq(std::move(body)));
}
/// What is known only as it runs.
Expr number() { return cast(load(n, {idx(0)}), kIndex); }
Expr unknown() { return less(idx(0), number()); }

/// The line of the oldest copy that is certainly unfinished; 0 without one.
int unfinished(std::vector<Stmt> body) {
  body.insert(body.begin(), alloc(x));
  try {
    verify(function("main", {a, n}, one_block(std::move(body))));
  } catch (const UserError& error) {
    EXPECT_EQ(error.diagnostic().code, Code::UnfinishedCopy) << error.what();
    return error.diagnostic().span.line;
  }
  return 0;
}

TEST(CopiesEnd, AWaitLeavesTheYoungest) {
  EXPECT_EQ(unfinished({}), 0);
  EXPECT_EQ(unfinished({copy(1)}), 1);
  EXPECT_EQ(unfinished({copy(1), wait()}), 0);
  EXPECT_EQ(unfinished({wait(), copy(2)}), 2);
  EXPECT_EQ(unfinished({copy(1), copy(2), wait(1)}), 1);
  EXPECT_EQ(unfinished({copy(1), wait(1), wait(0)}), 0);
  EXPECT_EQ(unfinished({copy(1), wait(5)}), 1);
  EXPECT_EQ(unfinished({commit(1)}), 1);  // what nothing began is a copy too
  EXPECT_EQ(unfinished({commit(1), wait()}), 0);
}

TEST(CopiesEnd, OfTwoWaysTheOneWithFewerCounts) {
  EXPECT_EQ(unfinished({if_then(unknown(), copy(1), copy(2))}), 1);
  EXPECT_EQ(unfinished({if_then(unknown(), copy(1))}), 0);
  EXPECT_EQ(unfinished({copy(1), if_then(unknown(), wait())}), 0);
  EXPECT_EQ(unfinished({copy(1), if_then(unknown(), wait(), copy(3))}), 0);
  EXPECT_EQ(unfinished({copy(1), if_then(unknown(), wait(), wait()), copy(4)}), 4);
}

TEST(CopiesEnd, OfAllNumbersOfIterationsTheOneWithFewestCounts) {
  EXPECT_EQ(unfinished({loop(idx(3), {copy(1)})}), 1);
  EXPECT_EQ(unfinished({loop(idx(0), {copy(1)})}), 0);
  EXPECT_EQ(unfinished({loop(number(), {copy(1)})}), 0);
  EXPECT_EQ(unfinished({copy(1), loop(idx(3), {wait()})}), 0);
  EXPECT_EQ(unfinished({copy(1), loop(number(), {wait()})}), 0);
  EXPECT_EQ(unfinished({copy(1), loop(number(), {copy(2)})}), 1);
  EXPECT_EQ(unfinished({loop(idx(3), {wait(), copy(1)})}), 1);
  EXPECT_EQ(unfinished({copy(1), loop(idx(3), {copy(2), wait(1)})}), 1);
  EXPECT_EQ(unfinished({copy(1), copy(2), loop(idx(3), {wait(1)}), wait(1)}), 1);
  EXPECT_EQ(unfinished({while_loop(unknown(), copy(1))}), 0);
  EXPECT_EQ(unfinished({copy(1), while_loop(unknown(), wait())}), 0);
  EXPECT_EQ(unfinished({copy(1), while_loop(unknown(), copy(2))}), 1);
}

TEST(CopiesEnd, WhatIterationsBeginCountsWhenItIsCommitted) {
  const VarRef i = make_var("i");
  const BufferRef y = shared("Y", kFloat32, {8, 8});
  const auto rows = [&](Expr extent) {
    const Region from = box(a, {{Expr(i), -1}, {idx(0), 8}}), to = box(y, {{Expr(i), -1}, {idx(0), 8}});
    return for_loop(LoopKind::Parallel, i, std::move(extent),
                    tile_op(TileOpcode::CopyAsync, {from, to, f32(0)}, line(1)));
  };
  EXPECT_EQ(unfinished({alloc(y), rows(idx(8)), commit(2)}), 2);
  EXPECT_EQ(unfinished({alloc(y), rows(idx(8)), commit(2), wait()}), 0);
}

std::string verdict_on(Region from, Region to) {
  const VarRef i = make_var("i");
  const BufferRef inside = shared("S", kFloat32, {8, 8});
  to.buffer = inside;
  for (Region* region : {&from, &to}) {
    for (Range& range : region->ranges) range.begin = as<Var>(range.begin) ? Expr(i) : range.begin;
  }
  const Stmt body = for_loop(LoopKind::Parallel, i, idx(4), tile_op(TileOpcode::CopyAsync, {from, to, f32(0)}));
  try {
    verify(function("main", {a}, one_block({alloc(inside), body, commit(2), wait()})));
  } catch (const UserError& error) {
    return error.diagnostic().message();
  }
  return "accepted";
}

TEST(RunsOfIterations, OneRunAlongTheLastDimension) {
  const Expr i(make_var("i"));
  EXPECT_EQ(verdict_on(box(a, {{i, -1}, {idx(0), 8}}), box(a, {{i, -1}, {idx(0), 8}})), "accepted");
  EXPECT_EQ(verdict_on(box(a, {{i, 1}, {idx(4), 2}}), box(a, {{i, 1}, {idx(0), 2}})), "accepted");
  EXPECT_EQ(verdict_on(box(a, {{idx(0), 2}, {i, 1}}), box(a, {{idx(0), 2}, {i, 1}})),
            "'T.copy_async' cannot take (2, 1) for 'src': an iteration copies one run of constant length along the "
            "last dimension");
  EXPECT_EQ(verdict_on(box(a, {{i, -1}, {idx(0), 4}}), box(a, {{idx(0), 4}, {i, -1}})),
            "'T.copy_async' cannot take (4,) for 'dst': an iteration copies one run of constant length along the last "
            "dimension");
}

}  // namespace
}  // namespace helve::testing
