// Copies of nodes with other fields: they know their own parts, and nothing else copies a node that does.
#include <gtest/gtest.h>

#include "helve/ir/expr/build.h"
#include "helve/ir/tensor/stmt.h"

namespace helve {
namespace {

template <class N>
concept CopiedPlainly = requires(const N& node) { make_ref<N>(node); };

TEST(CopyWith, KnowsTheDepthOfTheNewParts) {
  const VarRef i = make_var("i", kIndex), j = make_var("j", kIndex);
  const Stmt leaf = bind(make_var("v", kIndex), Expr(i));
  const Stmt loop = for_loop(LoopKind::Serial, i, int_imm(4), leaf);
  const Stmt inner = for_loop(LoopKind::Serial, j, int_imm(4), leaf);
  ASSERT_EQ(loop->depth(), 2);
  const Ref<For> deeper = copy_with(*as<For>(loop), [&](For& copy) { copy.body = inner; });
  EXPECT_EQ(deeper->depth(), 3);
  EXPECT_EQ(loop->depth(), 2);
  const Ref<Cast> narrow = make_ref<Cast>(kInt64, Expr(i));
  const Ref<Cast> wider = copy_with(*narrow, [&](Cast& copy) { copy.value = Expr(i) + Expr(j); });
  EXPECT_EQ(wider->depth(), 3);
  EXPECT_EQ(wider->occurrences(), 4U);
}

TEST(CopyWith, IsNullWhereNothingChanged) {
  const Stmt loop = for_loop(LoopKind::Serial, make_var("i", kIndex), int_imm(4), seq({}));
  EXPECT_FALSE(copy_with(*as<For>(loop), [](For&) { return false; }));
  EXPECT_TRUE(copy_with(*as<For>(loop), [](For&) { return true; }));
}

TEST(CopyWith, IsTheOnlyCopyOfNodesThatMeasureTheirParts) {
  static_assert(!CopiedPlainly<For> && !CopiedPlainly<Kernel> && !CopiedPlainly<If> && !CopiedPlainly<While>);
  static_assert(!CopiedPlainly<Seq> && !CopiedPlainly<ForTiles>);
  static_assert(!CopiedPlainly<Apply> && !CopiedPlainly<Cast> && !CopiedPlainly<Load> && !CopiedPlainly<TileLoad>);
  static_assert(CopiedPlainly<Store> && CopiedPlainly<TileOp> && CopiedPlainly<IntImm>);
}

}  // namespace
}  // namespace helve
