// Arguments of kernels.
#include "helve/analysis/kernel_interface.h"

#include <gtest/gtest.h>

#include "helve/support/text.h"

namespace helve {
namespace {

Expr i64(int64_t v) { return int_imm(v); }

std::string describe(const Stmt& s) {
  KernelInterface found = kernel_interface(*as<Kernel>(s));
  return join(found.buffers, " ", [](const BufferRef& b) { return b->name; }) + " | " +
         join(found.scalars, " ", [](const VarRef& v) { return v->name; });
}

TEST(KernelInterface, WhatIsBoundInsideIsNoArgument) {
  VarRef bx = make_var("bx"), i = make_var("i"), v = make_var("v", kFloat32), s = make_var("s", kFloat32);
  BufferRef a = make_buffer("A", kFloat32, MemoryScope::Param, {i64(8)});
  BufferRef local = make_buffer("L", kFloat32, MemoryScope::Local, {i64(8)});
  Stmt body =
      seq({alloc(local), for_loop(LoopKind::Serial, i, i64(8),
                                  seq({bind(v, load(a, {Expr(i)})), store(local, {Expr(bx)}, Expr(v) * Expr(s))}))});
  EXPECT_EQ(describe(kernel({bx}, {i64(8)}, 128, body)), "A | s");
}

TEST(KernelInterface, OrderIsThatOfFirstUseShapesIncluded) {
  VarRef m = make_var("M"), n = make_var("N"), k = make_var("K"), ld = make_var("ld"), g = make_var("g"),
         bx = make_var("bx");
  BufferRef a = make_buffer("A", kFloat32, MemoryScope::Param, {Expr(m), Expr(n)}, {}, {Expr(ld), i64(1)});
  BufferRef b = make_buffer("B", kFloat32, MemoryScope::Param, {Expr(n), Expr(k)});
  // The store's buffer comes first, then its indices, then its value.
  Stmt body = store(b, {Expr(bx), i64(0)}, load(a, {i64(0), Expr(bx)}));
  EXPECT_EQ(describe(kernel({bx}, {Expr(g)}, 128, body)), "B A | g N K M ld");
}

TEST(KernelInterface, RegionsAndTileOperandsCount) {
  VarRef lo = make_var("lo"), pad = make_var("pad", kFloat32), bx = make_var("bx");
  BufferRef a = make_buffer("A", kFloat32, MemoryScope::Param, {i64(8)});
  BufferRef g = make_buffer("G", kFloat32, MemoryScope::Global, {i64(4)});
  Stmt copy = tile_op(TileOpcode::Copy, {Region{a, {{Expr(lo), i64(4), false}}}, whole_region(g), Expr(pad)});
  EXPECT_EQ(describe(kernel({bx}, {i64(1)}, 128, copy)), "A G | lo pad");
}

TEST(KernelInterface, AnEmptyKernelTakesNothing) {
  EXPECT_EQ(describe(kernel({make_var("bx")}, {i64(1)}, 128, seq({}))), " | ");
}

TEST(KernelInterface, AnElseBranchCounts) {
  VarRef c = make_var("c"), bx = make_var("bx");
  BufferRef a = make_buffer("A", kFloat32, MemoryScope::Param, {i64(8)});
  BufferRef b = make_buffer("B", kFloat32, MemoryScope::Param, {i64(8)});
  Stmt body = if_then(less(Expr(bx), Expr(c)), store(a, {i64(0)}, float_imm(1, kFloat32)),
                      store(b, {i64(0)}, float_imm(1, kFloat32)));
  EXPECT_EQ(describe(kernel({bx}, {i64(1)}, 128, body)), "A B | c");
}

}  // namespace
}  // namespace helve
