// Effects of statements and parameters.
#include "helve/analysis/effects.h"

#include <gtest/gtest.h>

namespace helve {
namespace {

Expr i64(int64_t v) { return int_imm(v); }
BufferRef param(const char* name, std::vector<Expr> shape, DType dtype = kFloat32) {
  return make_buffer(name, dtype, MemoryScope::Param, std::move(shape));
}

std::string describe(const std::vector<RegionAccess>& accesses) {
  std::string out;
  for (const RegionAccess& a : accesses) out += (a.write ? "w" : "r") + a.region.buffer->name + " ";
  return out;
}

std::string describe(const std::vector<ElementUse>& uses) {
  std::string out;
  for (const ElementUse& use : uses) out += (use.write ? "w" : "r") + use.buffer->name + " ";
  return out;
}

FunctionRef function(std::vector<Param> params, Stmt body) {
  Ref<Function> f = make_ref<Function>();
  f->name = "f";
  f->params = std::move(params);
  f->body = std::move(body);
  return f;
}

TEST(Effects, AStoreReadsIndicesAndValueBeforeItWrites) {
  BufferRef a = param("A", {i64(5)}), b = param("B", {i64(5)}), n = param("n", {i64(1)}, kInt32);
  Stmt s = store(a, {cast(load(n, {i64(0)}), kIndex)}, load(b, {i64(3)}) + load(a, {i64(1)}));
  EXPECT_EQ(describe(direct_accesses(s)), "rn rB rA wA ");
}

TEST(Effects, NestedStatementsAndConditions) {
  BufferRef a = param("A", {i64(5)}), b = param("B", {i64(5)}), c = param("C", {i64(5)}), unused = param("U", {});
  VarRef i = make_var("i"), v = make_var("v", kFloat32);
  Stmt body = seq({bind(v, load(a, {Expr(i)})), if_then(less(load(b, {Expr(i)}), Expr(v)), store(c, {Expr(i)}, Expr(v)),
                                                        store(a, {Expr(i)}, Expr(v)))});
  Stmt loop = for_loop(LoopKind::Serial, i, i64(5), body);
  EXPECT_EQ(describe(accesses(loop)), "rA rB wC wA ");
  EXPECT_TRUE(direct_accesses(loop).empty());
  std::vector<BufferEffect> effects = param_effects(*function({a, make_var("s", kFloat32), b, unused, c}, loop));
  ASSERT_EQ(effects.size(), 4u);
  EXPECT_TRUE(effects[0].read && effects[0].written);
  EXPECT_TRUE(effects[1].read && !effects[1].written);
  EXPECT_TRUE(!effects[2].read && !effects[2].written);
  EXPECT_TRUE(!effects[3].read && effects[3].written);
  EXPECT_EQ(effects[3].buffer, c);
}

TEST(Effects, GemmReadsItsAccumulatorUnlessCleared) {
  BufferRef a = param("A", {i64(2), i64(3)}), b = param("B", {i64(3), i64(4)}), c = param("C", {i64(2), i64(4)});
  auto gemm = [&](bool clear) {
    return tile_op(TileOpcode::Gemm, {whole_region(a), whole_region(b), whole_region(c), false, false, clear});
  };
  EXPECT_EQ(describe(accesses(gemm(false))), "rA rB rC wC ");
  EXPECT_EQ(describe(accesses(gemm(true))), "rA rB wC ");
}

TEST(Effects, AReductionReadsItsResultUnlessCleared) {
  BufferRef a = param("A", {i64(2), i64(3)}), b = param("B", {i64(2)});
  auto reduce = [&](bool clear) {
    return tile_op(TileOpcode::ReduceSum, {whole_region(a), whole_region(b), int64_t{-1}, clear});
  };
  EXPECT_EQ(describe(accesses(reduce(true))), "rA wB ");
  EXPECT_EQ(describe(accesses(reduce(false))), "rA rB wB ");
}

TEST(Effects, OperandsMayLoadInTheirBounds) {
  BufferRef a = param("A", {i64(7)}), b = param("B", {i64(1)}), n = param("n", {i64(1)}, kInt32);
  Region from{a, {{cast(load(n, {i64(0)}), kIndex), i64(1), false}}};
  Stmt copy = tile_op(TileOpcode::Copy, {from, whole_region(b), int_imm(0)});
  EXPECT_EQ(describe(accesses(copy)), "rn rA wB ");
}

TEST(Effects, ATileAccessIsTheBoxOfItsTile) {
  BufferRef x = make_buffer("X", kFloat32, MemoryScope::Shared, {i64(100), i64(50)}, {32, 16});
  BufferRef p = make_buffer("P", kFloat32, MemoryScope::Shared, {i64(100)}, {32});
  VarRef i = make_var("i"), j = make_var("j");
  Stmt s =
      tile_store(x, {Expr(i), Expr(j)}, apply(Op::Mul, {tile_load(x, {i64(2), Expr(j)}), tile_load(p, {Expr(i)})}));
  std::vector<RegionAccess> found = direct_accesses(s);
  ASSERT_EQ(describe(found), "rX rP wX ");
  EXPECT_EQ(*int_value(found[0].region.ranges[0].begin), 64);
  EXPECT_EQ(*int_value(found[0].region.ranges[0].extent), 32);
  EXPECT_EQ(*int_value(found[0].region.ranges[1].extent), 16);
  EXPECT_EQ(*int_value(found[1].region.ranges[0].extent), 32);
  EXPECT_FALSE(found[2].region.ranges[0].point);
}

TEST(Effects, ElementUsesStandInProgramOrder) {
  BufferRef a = param("A", {i64(5)}), b = param("B", {i64(5)}), c = param("C", {i64(5)}), n = param("n", {i64(1)});
  VarRef i = make_var("i");
  const Expr count = cast(load(n, {i64(0)}), kIndex);
  Stmt branch = if_then(less(load(b, {Expr(i)}), load(a, {i64(1)})), store(c, {Expr(i)}, load(a, {Expr(i)})),
                        store(a, {count}, load(b, {Expr(i)}), {}, StoreMode::AtomicAdd));
  Stmt loop = for_loop(LoopKind::Serial, i, count, branch);
  EXPECT_EQ(describe(element_uses(loop)), "rn rB rA rA wC rn rB wA ");
  EXPECT_EQ(describe(element_uses(Stmt())), "");
  const Store& last = *as<Store>(as<If>(branch)->else_body);
  EXPECT_EQ(element_uses(branch).back().indices, &last.indices);
  EXPECT_TRUE(uses_elements(loop, *n) && uses_elements(loop, *c));
  EXPECT_FALSE(uses_elements(as<If>(branch)->then_body, *b));
}

TEST(Effects, AnUpdateReadsAndWritesItsElement) {
  BufferRef a = param("A", {i64(5)}), b = param("B", {i64(5)});
  VarRef i = make_var("i");
  Stmt update = store(a, {Expr(i)}, load(b, {Expr(i)}), {}, StoreMode::Mul);
  EXPECT_EQ(describe(element_uses(update)), "rB rA wA ");
  const std::vector<BufferEffect> effects = param_effects(*function({a, b}, update));
  EXPECT_TRUE(effects[0].read && effects[0].written);
  EXPECT_TRUE(effects[1].read && !effects[1].written);
  EXPECT_FALSE(constant_memory(update, {}).contains(a.get()));
}

TEST(Effects, OperandsAndTilesAreNoElementsButTheirBoundsReadSome) {
  BufferRef a = param("A", {i64(7)}), b = param("B", {i64(1)}), n = param("n", {i64(1)}, kInt32);
  Region from{a, {{cast(load(n, {i64(0)}), kIndex), i64(1), false}}};
  EXPECT_EQ(describe(element_uses(tile_op(TileOpcode::Copy, {from, whole_region(b), int_imm(0)}))), "rn ");
  BufferRef x = make_buffer("X", kFloat32, MemoryScope::Shared, {i64(100)}, {32});
  EXPECT_EQ(describe(element_uses(tile_store(x, {i64(0)}, tile_load(x, {cast(load(n, {i64(0)}), kIndex)})))), "rn ");
}

TEST(Effects, AnEmptyBodyTouchesNothing) {
  BufferRef a = param("A", {i64(5)});
  std::vector<BufferEffect> effects = param_effects(*function({a}, seq({})));
  ASSERT_EQ(effects.size(), 1u);
  EXPECT_FALSE(effects[0].read || effects[0].written);
  EXPECT_TRUE(buffer_effects(seq({})).empty());
}

TEST(Effects, BuffersStandInOrderOfFirstAccess) {
  BufferRef a = param("A", {i64(5)}), b = param("B", {i64(5)});
  Stmt body = seq({store(b, {i64(0)}, load(a, {i64(0)})), store(a, {i64(1)}, load(b, {i64(1)}))});
  std::vector<BufferEffect> effects = buffer_effects(body);
  ASSERT_EQ(effects.size(), 2u);
  EXPECT_EQ(effects[0].buffer, a);
  EXPECT_TRUE(effects[0].read && effects[0].written && effects[1].read && effects[1].written);
}

}  // namespace
}  // namespace helve
