// Code of threads with barriers becomes loops without: what is kept is in registers, what decides is the block's.
#include "helve/ir/tensor/thread_steps.h"

#include <gtest/gtest.h>

#include "helve/ir/tensor/equal.h"
#include "helve/support/diagnostic.h"

namespace helve {
namespace {

class ThreadSteps : public ::testing::Test {
 protected:
  const BufferRef s_ = make_buffer("S", kFloat32, MemoryScope::Shared, {int_imm(32)}, {}, {}, {});
  const VarRef tx_ = make_var("tx");

  Stmt loop(std::vector<Stmt> body) const { return for_loop(LoopKind::Thread, tx_, int_imm(32), seq(std::move(body))); }
  static Stmt meet() { return tile_op(TileOpcode::SyncThreads, {}); }
  Stmt put(const Expr& value) const { return store(s_, {Expr(tx_)}, value); }
};

TEST_F(ThreadSteps, NothingMeets) {
  const Stmt s = loop({put(float_imm(1.0, kFloat32))});
  EXPECT_EQ(thread_steps(s), s);
}

TEST_F(ThreadSteps, ALoopForEachStep) {
  const VarRef x = make_var("x", kFloat32), i = make_var("i");
  const Stmt s =
      loop({bind(x, load(s_, {Expr(tx_)})), bind(i, int_imm(31) - Expr(tx_)), meet(), store(s_, {Expr(i)}, Expr(x))});
  const BufferRef kept = make_buffer("x", kFloat32, MemoryScope::Fragment, {int_imm(32), int_imm(1)}, {}, {}, {});
  const VarRef a = make_var("a"), b = make_var("b"), y = make_var("y", kFloat32), j = make_var("j"), u = make_var("u");
  const VarRef z = make_var("z", kFloat32);
  const Stmt wanted = seq({alloc(kept),
                           for_loop(LoopKind::Thread, a, int_imm(32),
                                    seq({bind(y, load(s_, {Expr(a)})), store(kept, {Expr(a), int_imm(0)}, Expr(y)),
                                         bind(u, int_imm(31) - Expr(a))})),
                           for_loop(LoopKind::Thread, b, int_imm(32),
                                    seq({bind(z, load(kept, {Expr(b), int_imm(0)})), bind(j, int_imm(31) - Expr(b)),
                                         store(s_, {Expr(j)}, Expr(z))}))});
  std::string path;
  EXPECT_TRUE(structural_equal(thread_steps(s), wanted, &path)) << path;
}

TEST_F(ThreadSteps, ControlFlowThatMayDifferIsRefused) {
  const Stmt branch = if_then(apply(Op::Lt, {Expr(tx_), int_imm(3)}), meet());
  try {
    thread_steps(loop({branch}));
    FAIL() << "a barrier that some threads reach";
  } catch (const UserError& error) {
    EXPECT_EQ(error.diagnostic().code, Code::OperationScope);
  }
}

}  // namespace
}  // namespace helve
