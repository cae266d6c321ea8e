// First accesses along the paths of a statement.
// What decides is every path that accesses the buffer at all.
#include "helve/analysis/first_access.h"

#include <gtest/gtest.h>

namespace helve {
namespace {

class FirstAccess : public testing::Test {
 protected:
  FirstAccess() : a_(make_buffer("A", kFloat32, MemoryScope::Param, {int_imm(5)})) {}

  Expr load_a() const { return load(a_, {Expr(i_)}); }
  Stmt write() const { return store(a_, {Expr(i_)}, float_imm(1, kFloat32)); }
  Stmt read() const { return store(b_, {Expr(i_)}, load_a()); }
  Stmt add() const { return store(a_, {Expr(i_)}, load_a() + load(b_, {Expr(i_)})); }
  bool read_first(const Stmt& s) const { return is_read_first(s, *a_); }
  Stmt loop(const Stmt& body) const { return for_loop(LoopKind::Serial, i_, int_imm(5), body); }

  VarRef i_ = make_var("i");
  Expr condition_ = less(Expr(i_), int_imm(3));
  BufferRef a_;
  BufferRef b_ = make_buffer("B", kFloat32, MemoryScope::Param, {int_imm(5)});
};

TEST_F(FirstAccess, AStatementReadsBeforeItWrites) {
  EXPECT_TRUE(read_first(loop(add())));
  EXPECT_TRUE(read_first(read()));
  EXPECT_FALSE(read_first(write()));
  EXPECT_FALSE(read_first(store(b_, {Expr(i_)}, float_imm(1, kFloat32))));
}

TEST_F(FirstAccess, AnEarlierPartDecides) {
  EXPECT_FALSE(read_first(seq({loop(write()), loop(add())})));
  EXPECT_TRUE(read_first(seq({loop(add()), loop(write())})));
}

TEST_F(FirstAccess, BranchesArePaths) {
  EXPECT_TRUE(read_first(if_then(condition_, add(), Stmt())));
  EXPECT_FALSE(read_first(if_then(condition_, add(), write())));
  EXPECT_FALSE(read_first(seq({if_then(condition_, add(), Stmt()), write()})));
  EXPECT_FALSE(read_first(seq({if_then(condition_, write(), Stmt()), add()})));
  EXPECT_TRUE(read_first(seq({if_then(condition_, read(), Stmt()), add()})));
}

TEST_F(FirstAccess, AnOperatorMaySkipTheRead) {
  const Expr chosen = select(condition_, load_a(), float_imm(0, kFloat32));
  EXPECT_FALSE(read_first(store(a_, {Expr(i_)}, chosen)));
}

}  // namespace
}  // namespace helve
