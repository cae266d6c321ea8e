// What iterations read before they write it, and what is read after a loop.
#include "helve/analysis/iteration_scratch.h"

#include <gtest/gtest.h>

#include <functional>

namespace helve {
namespace {

Expr idx(int64_t v) { return int_imm(v); }

class Scratch : public ::testing::Test {
 protected:
  BufferRef x_ = make_buffer("x", kInt32, MemoryScope::Local, {idx(4)});
  BufferRef a_ = make_buffer("A", kInt32, MemoryScope::Param, {idx(64)});

  Stmt put(const Expr& at) const { return store(x_, {at}, int_imm(1, kInt32)); }
  Stmt get(const Expr& at) const { return store(a_, {idx(0)}, load(x_, {at})); }
  static Stmt loop(LoopKind kind, int64_t extent, const std::function<Stmt(const Expr&)>& body) {
    const VarRef var = make_var("i");
    return for_loop(kind, var, idx(extent), body(Expr(var)));
  }
  static Stmt serial(int64_t extent, const std::function<Stmt(const Expr&)>& body) {
    return loop(LoopKind::Serial, extent, body);
  }
  ReadFirst first(const Stmt& s) const { return reads_before_writing(s, *x_); }
  Expr unknown() const { return less(load(a_, {idx(1)}), int_imm(5, kInt32)); }
};

TEST_F(Scratch, AnElementThatWasWrittenIsNoFirstRead) {
  EXPECT_EQ(first(seq({put(idx(2)), get(idx(2))})), ReadFirst::Never);
  EXPECT_EQ(first(seq({get(idx(2)), put(idx(2))})), ReadFirst::Always);
  EXPECT_EQ(first(seq({put(idx(2)), get(idx(1))})), ReadFirst::Maybe);
}

TEST_F(Scratch, ALoopOverADimensionWritesAllOfIt) {
  const auto fill = [&](int64_t extent) { return serial(extent, [&](const Expr& i) { return put(i); }); };
  EXPECT_EQ(first(seq({fill(4), get(idx(3))})), ReadFirst::Never);
  EXPECT_EQ(first(seq({fill(3), get(idx(3))})), ReadFirst::Maybe);
  EXPECT_EQ(first(seq({fill(3), get(idx(2))})), ReadFirst::Maybe);  // no part of a dimension is followed
  EXPECT_EQ(first(serial(4, [&](const Expr& i) { return seq({put(i), get(i)}); })), ReadFirst::Never);
  EXPECT_EQ(first(serial(4, [&](const Expr& i) { return seq({put(i), get(idx(3) - i)}); })), ReadFirst::Maybe);
}

TEST_F(Scratch, OnlyWhatBothBranchesWriteIsWritten) {
  EXPECT_EQ(first(seq({if_then(unknown(), put(idx(0)), put(idx(0))), get(idx(0))})), ReadFirst::Never);
  EXPECT_EQ(first(seq({if_then(unknown(), put(idx(0))), get(idx(0))})), ReadFirst::Maybe);
  EXPECT_EQ(first(seq({if_then(unknown(), get(idx(0))), put(idx(0))})), ReadFirst::Maybe);
}

TEST_F(Scratch, ALoopThatMayNotRunWritesNothing) {
  const VarRef n = make_var("n"), i = make_var("i");
  const Stmt fill = for_loop(LoopKind::Serial, i, Expr(n), put(idx(0)));
  EXPECT_EQ(first(seq({fill, get(idx(0))})), ReadFirst::Maybe);
}

TEST_F(Scratch, AnAtomicUpdateReads) {
  const Stmt add = store(x_, {idx(0)}, int_imm(1, kInt32), {}, StoreMode::AtomicAdd);
  EXPECT_EQ(first(add), ReadFirst::Always);
}

TEST_F(Scratch, ACollectiveWritesAllOfItWhereNoCoreKeepsItsValues) {
  const Region src = whole_region(make_buffer("s", kInt32, MemoryScope::Local, {idx(4)})), dst = whole_region(x_);
  const auto after = [&](TileOpcode op, std::vector<TileOperand> rest) {
    rest.insert(rest.begin(), {src, dst});
    return first(seq({tile_op(op, std::move(rest)), get(idx(2))}));
  };
  const VarRef k = make_var("k");
  const std::string axis = "x";
  EXPECT_EQ(after(TileOpcode::CommBroadcast, {idx(0)}), ReadFirst::Never);
  EXPECT_EQ(after(TileOpcode::CommPermute, {}), ReadFirst::Never);
  EXPECT_EQ(after(TileOpcode::CommPermute, {idx(1), axis, IndexMap{k, Expr(k)}}), ReadFirst::Maybe);
  EXPECT_EQ(after(TileOpcode::CommReduce, {}), ReadFirst::Maybe);
  EXPECT_EQ(after(TileOpcode::CommGather, {idx(0)}), ReadFirst::Maybe);
  EXPECT_EQ(after(TileOpcode::CommPut, {std::vector<Expr>{idx(0)}, std::vector<Expr>{idx(1)}}), ReadFirst::Maybe);
}

TEST_F(Scratch, WhatIsReadAfterALoop) {
  const auto each = [&](const Expr&) { return put(idx(0)); };
  const Stmt work = loop(LoopKind::Parallel, 8, each);
  const auto after = [&](const Stmt& body) { return read_after_loop(body, *work, *x_); };
  EXPECT_EQ(after(work), ReadFirst::Never);
  EXPECT_EQ(after(seq({get(idx(0)), work})), ReadFirst::Never);
  EXPECT_EQ(after(seq({work, get(idx(0))})), ReadFirst::Always);
  EXPECT_EQ(after(seq({work, put(idx(0)), get(idx(0))})), ReadFirst::Never);
  EXPECT_EQ(after(seq({work, if_then(unknown(), get(idx(0)))})), ReadFirst::Maybe);
  EXPECT_EQ(after(seq({work, alloc(x_), get(idx(0))})), ReadFirst::Never);
}

TEST_F(Scratch, TheNextIterationComesAfterIt) {
  const auto each = [&](const Expr&) { return put(idx(0)); };
  const Stmt work = loop(LoopKind::Parallel, 8, each);
  const auto turns = [&](const std::vector<Stmt>& body) {
    return read_after_loop(serial(3, [&](const Expr&) { return seq(body); }), *work, *x_);
  };
  EXPECT_EQ(turns({get(idx(0)), work}), ReadFirst::Maybe);
  EXPECT_EQ(turns({put(idx(0)), get(idx(0)), work}), ReadFirst::Never);
  EXPECT_EQ(turns({work}), ReadFirst::Never);
}

TEST_F(Scratch, SubscriptsTellIterationsApartOrTheyMayMeet) {
  const BufferRef rows = make_buffer("rows", kInt32, MemoryScope::Local, {idx(8), idx(4)});
  const auto to = [&](const Expr& row, const Expr& at) { return store(rows, {row, at}, int_imm(1, kInt32)); };
  const auto meet = [&](int64_t extent, const std::function<Stmt(const Expr&)>& body) {
    const Stmt work = loop(LoopKind::Parallel, extent, body);
    return iterations_may_conflict(*as<For>(work), *rows);
  };
  EXPECT_FALSE(meet(8, [&](const Expr& i) { return to(i, idx(0)); }));
  EXPECT_FALSE(meet(8, [&](const Expr& i) { return serial(4, [&](const Expr& k) { return to(i, k); }); }));
  const auto by_data = [&](const Expr& i) { return cast(load(a_, {i}), kIndex); };
  EXPECT_FALSE(meet(8, [&](const Expr& i) { return to(i, by_data(i)); }));
  EXPECT_FALSE(meet(8, [&](const Expr&) { return get(idx(0)); }));  // only what is written
  EXPECT_FALSE(meet(1, [&](const Expr&) { return to(idx(0), idx(0)); }));
  EXPECT_TRUE(meet(8, [&](const Expr&) { return to(idx(0), idx(0)); }));
  EXPECT_TRUE(meet(8, [&](const Expr& i) { return to(by_data(i), idx(0)); }));
  EXPECT_TRUE(meet(8, [&](const Expr& i) { return seq({to(i, idx(0)), to(i + idx(1), idx(0))}); }));
  EXPECT_TRUE(meet(4, [&](const Expr& i) { return serial(4, [&](const Expr& k) { return to(i + k, idx(0)); }); }));
  EXPECT_TRUE(
      meet(8, [&](const Expr& i) { return seq({to(i, idx(0)), store(a_, {i}, load(rows, {idx(7) - i, idx(0)}))}); }));
}

TEST_F(Scratch, AnIterationAccessesOneElementIfItsSubscriptsAreOneAndKeepTheirValue) {
  const auto only = [&](const Stmt& s, const std::vector<MayAlias>& alias = {}) {
    return only_element(s, *x_, alias) != nullptr;
  };
  const BufferRef b = make_buffer("B", kInt32, MemoryScope::Param, {idx(64)});
  const Expr by_data = cast(load(a_, {idx(7)}), kIndex), by_own = cast(load(x_, {idx(0)}), kIndex);
  const auto other = [&](const BufferRef& to) { return store(to, {idx(0)}, int_imm(1, kInt32)); };
  EXPECT_TRUE(only(seq({put(idx(2)), get(idx(2))})));
  EXPECT_FALSE(only(seq({put(idx(2)), get(idx(1))})));
  EXPECT_FALSE(only(other(b)));
  EXPECT_TRUE(only(seq({put(by_data), other(b), put(by_data)})));
  EXPECT_FALSE(only(seq({put(by_data), other(a_), put(by_data)})));
  EXPECT_FALSE(only(seq({put(by_data), other(b), put(by_data)}), {{{a_, b}, {}, {}}}));
  EXPECT_FALSE(only(put(by_own)));
  EXPECT_FALSE(only(serial(4, [&](const Expr& i) { return put(i); })));
  const VarRef k = make_var("k");
  const Stmt named = seq({bind(k, by_data), other(a_), put(Expr(k))});
  EXPECT_TRUE(only(named));  // a name keeps its value
  EXPECT_FALSE(only(serial(4, [&](const Expr&) { return named; })));
}

TEST_F(Scratch, AnAccessIsSureWhereNoConditionLoopOrOperandLeavesItOut) {
  const auto sure = [&](const Stmt& s) { return surely_accesses(s, *x_); };
  const auto times = [&](const Expr& count, const Stmt& s) {
    return for_loop(LoopKind::Serial, make_var("i"), count, s);
  };
  const Expr small = less(load(x_, {idx(0)}), int_imm(5, kInt32));
  const auto test = [&](const Expr& condition) { return if_then(condition, store(a_, {idx(0)}, int_imm(1, kInt32))); };
  EXPECT_TRUE(sure(put(idx(0))));
  EXPECT_TRUE(sure(seq({store(a_, {idx(0)}, int_imm(1, kInt32)), get(idx(0))})));
  EXPECT_FALSE(sure(if_then(unknown(), put(idx(0)))));
  EXPECT_TRUE(sure(if_then(unknown(), put(idx(0)), get(idx(0)))));
  EXPECT_TRUE(sure(test(apply(Op::And, {small, unknown()}))));
  EXPECT_FALSE(sure(test(apply(Op::And, {unknown(), small}))));
  EXPECT_TRUE(sure(times(idx(3), put(idx(0)))));
  EXPECT_FALSE(sure(times(idx(0), put(idx(0)))));
  EXPECT_FALSE(sure(times(cast(load(a_, {idx(0)}), kIndex), put(idx(0)))));
}

}  // namespace
}  // namespace helve
