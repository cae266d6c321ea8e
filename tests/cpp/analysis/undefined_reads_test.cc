// Warnings of buffers that are used before anything is written to them.
// Only what certainly comes first counts: conditions, selections and loops without a turn keep it quiet.
#include <gtest/gtest.h>

#include "helve/analysis/proofs.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

class UndefinedReads : public ::testing::Test {
 protected:
  /// The number of warnings for a kernel in which `s` is allocated, then `body`.
  size_t warned(std::vector<Stmt> body) const {
    body.insert(body.begin(), alloc(s));
    const Stmt blocks = kernel({make_var("b")}, {int_imm(2)}, 128, seq(std::move(body)));
    const FunctionRef f = dynamic_function("f", {n}, {out}, blocks);
    size_t count = 0;
    for (const Diagnostic& each : find_warnings(*f, {})) count += each.code == Code::UndefinedRead;
    return count;
  }

  Stmt each(const Stmt& body) const { return for_loop(LoopKind::Parallel, i, int_imm(8), body); }
  Stmt clear() const { return tile_op(TileOpcode::Clear, {whole_region(s)}); }
  Stmt copy(const BufferRef& to) const { return tile_op(TileOpcode::Copy, {whole_region(s), whole_region(to)}); }
  Stmt use() const { return store(out, {Expr(i)}, load(s, {Expr(i)})); }
  Stmt add() const { return store(s, {Expr(i)}, load(s, {Expr(i)}) + f32(1)); }

  const VarRef i = make_var("i"), j = make_var("j"), n = make_var("n");
  const BufferRef out = param("OUT", kFloat32, {8}), s = shared("s", kFloat32, {8}), p = shared("p", kFloat32, {8});
};

TEST_F(UndefinedReads, AUseThatComesFirst) {
  EXPECT_EQ(warned({each(use())}), 1u);
  EXPECT_EQ(warned({copy(out)}), 1u);
  EXPECT_EQ(warned({each(use()), clear()}), 1u);
  EXPECT_EQ(warned({serial(j, idx(4), {each(add())})}), 1u);
  EXPECT_EQ(warned({serial(j, Expr(n), {each(add())})}), 1u);
  EXPECT_EQ(warned({each(store(s, {Expr(i)}, f32(1), {}, StoreMode::Add))}), 1u);
}

TEST_F(UndefinedReads, WhatMayBeWrittenBefore) {
  const Expr later = less(idx(0), Expr(j));
  EXPECT_EQ(warned({clear(), each(use())}), 0u);
  EXPECT_EQ(warned({serial(j, idx(0), {each(use())})}), 0u);
  EXPECT_EQ(warned({serial(j, idx(4), {if_then(later, each(use())), clear()})}), 0u);
  EXPECT_EQ(warned({serial(j, idx(4), {each(store(s, {Expr(i)}, select(later, load(s, {Expr(i)}), f32(0))))})}), 0u);
}

TEST_F(UndefinedReads, ElementsThatNothingWrites) {
  const auto some = [&](int64_t begin, int64_t count) {
    return for_loop(LoopKind::Serial, {j}, {idx(begin)}, {idx(count)}, store(s, {Expr(j)}, f32(1)));
  };
  EXPECT_EQ(warned({some(0, 7), each(use())}), 1u);
  EXPECT_EQ(warned({some(1, 7), each(use())}), 1u);
  EXPECT_EQ(warned({some(0, 3), each(use()), some(4, 4)}), 1u);
  EXPECT_EQ(warned({some(0, 3), copy(out)}), 0u);  // a copy to a tensor may end inside
  EXPECT_EQ(warned({some(0, 3), store(out, {idx(0)}, load(s, {Expr(n)}))}), 0u);  // in some calls
  EXPECT_EQ(warned({some(0, 4), some(4, 4), each(use())}), 0u);
  EXPECT_EQ(warned({some(4, 4), each(use()), some(0, 4)}), 0u);  // written, if not before
  EXPECT_EQ(warned({some(0, 7), if_then(less(idx(0), Expr(n)), each(use()))}), 0u);
  EXPECT_EQ(warned({some(0, 7), for_loop(LoopKind::Parallel, i, idx(7), use())}), 0u);
  EXPECT_EQ(warned({for_loop(LoopKind::Serial, {j}, {idx(0)}, {Expr(n)}, store(s, {Expr(j)}, f32(1))), each(use())}),
            0u);
}

TEST_F(UndefinedReads, ACopyPassesThemOn) { EXPECT_EQ(warned({alloc(p), copy(p), clear()}), 0u); }

}  // namespace
}  // namespace helve::testing
