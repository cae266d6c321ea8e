// Passes on programs at the edge of what they handle.
// Each case is small enough to be read; whole programs are compared with the interpreter elsewhere.
#include "helve/transform/passes.h"

#include <gtest/gtest.h>

#include "helve/ir/tensor/equal.h"
#include "helve/ir/tensor/verify.h"
#include "helve/ir/tensor/visit.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve {
namespace {

using namespace testing;

size_t count(const FunctionRef& f, StmtKind kind) {
  size_t n = 0;
  walk(f->body, [&](const Stmt& s) { n += s->kind == kind; });
  return n;
}

/// X[p, q] = X[p, q] + 1 over the tiles of X, of which dimension 1 has one.
FunctionRef one_tile_across(const std::function<Stmt(Stmt, const VarRef&)>& around) {
  BufferRef x = shared("X", kFloat32, {4, 3}, {2, 3});
  VarRef p = make_var("p"), q = make_var("q");
  Stmt add = tile_store(x, {Expr(p), Expr(q)}, tile_load(x, {Expr(p), Expr(q)}) + f32(1));
  return function("main", {}, one_block({alloc(x), for_tiles(x, {p, q}, true, around(add, q))}));
}

TEST(ScopedRewriting, TileNumbersOfOneValueStayVariables) {
  for (auto pass : {lower_tile_ops, simplify_function}) {
    FunctionRef plain = one_tile_across([](Stmt s, const VarRef&) { return s; });
    EXPECT_EQ(pass(plain, {}), plain);
    FunctionRef guarded =
        one_tile_across([](Stmt s, const VarRef& q) { return if_then(apply(Op::Eq, {Expr(q), idx(0)}), s); });
    EXPECT_NO_THROW(verify(pass(guarded, {})));
  }
}

TEST(BlockLoops, AnEmptyDomainIsNoLoopAndNoDivision) {
  for (const std::vector<int64_t>& domain : std::vector<std::vector<int64_t>>{{0}, {3, 0}, {0, 3}}) {
    std::vector<VarRef> vars;
    std::vector<Expr> begins, extents;
    for (int64_t e : domain) {
      vars.push_back(make_var("i"));
      begins.push_back(idx(0));
      extents.push_back(idx(e));
    }
    BufferRef a = param("A", kFloat32, {4});
    Stmt loop = for_loop(LoopKind::Persistent, vars, begins, extents, store(a, {Expr(vars[0])}, f32(1)));
    FunctionRef lowered = lower_block_loops(function("main", {a}, kernel({make_var("b")}, {idx(2)}, 128, loop)), {});
    EXPECT_EQ(count(lowered, StmtKind::For), 0u);
    EXPECT_EQ(count(lowered, StmtKind::Store), 0u);
  }
}

TEST(TileOps, ACopyInsideOneBufferGoesThroughAnotherUnlessItIsDisjoint) {
  BufferRef s = shared("S", kFloat32, {40});
  auto lowered = [&](int64_t from, int64_t to) {
    Stmt copy = tile_op(TileOpcode::Copy, {box(s, {{idx(from), 8}}), box(s, {{idx(to), 8}}), f32(0)});
    return lower_tile_ops(function("main", {}, one_block({alloc(s), copy})), {});
  };
  EXPECT_EQ(count(lowered(0, 5), StmtKind::Alloc), 2u);
  EXPECT_EQ(count(lowered(7, 0), StmtKind::Alloc), 2u);
  EXPECT_EQ(count(lowered(0, 8), StmtKind::Alloc), 1u);
  EXPECT_EQ(count(lowered(20, 3), StmtKind::Alloc), 1u);
}

}  // namespace
}  // namespace helve
