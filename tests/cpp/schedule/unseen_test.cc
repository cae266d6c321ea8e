// Stores that a step adds: of memory that nobody reads, inside of its buffer, of values that are there.
// Each condition on which that rests decides a case here.
#include "unseen.h"

#include <gtest/gtest.h>

#include "helve/schedule/find.h"
#include "ir/tensor/programs/build_ir.h"

namespace helve::testing {
namespace {

const VarRef i = make_var("i"), k = make_var("k");
const BufferRef a = param("A", kInt32, {8}), b = param("B", kInt32, {8});
const BufferRef own = make_buffer("X", kInt32, MemoryScope::Local, {idx(9)}),
                other = make_buffer("Y", kInt32, MemoryScope::Local, {idx(2)});

Expr element(const BufferRef& of, const Expr& at) { return load(of, {at}); }
Stmt put(const BufferRef& into, const Expr& at, const Expr& value) { return store(into, {at}, value); }
Stmt loop(const VarRef& var, const Stmt& body) { return for_loop(LoopKind::Serial, {var}, {idx(0)}, {idx(8)}, body); }

Legality judged(const FunctionRef& f, const std::vector<Stmt>& extra) {
  Unseen unseen{f, {}};
  walk_cursors(*f, [&](const Cursor& at, const Stmt& s) {
    if (std::find(extra.begin(), extra.end(), s) != extra.end()) unseen.stores.push_back(at);
  });
  EXPECT_EQ(unseen.stores.size(), extra.size());
  return check_unseen(unseen);
}
std::string said(const std::vector<Stmt>& body, const Stmt& extra) {
  return text_of(judged(function("f", {a, b}, seq(body)), {extra}));
}

/// The first eight elements are copied through `own`, and `extra` stands in between.
std::string between(const Stmt& extra, const std::vector<Stmt>& in_front = {}) {
  std::vector<Stmt> body{alloc(own), alloc(other)};
  body.insert(body.end(), in_front.begin(), in_front.end());
  body.push_back(loop(i, put(own, i, element(b, i))));
  body.push_back(extra);
  body.push_back(loop(i, put(a, i, element(own, i))));
  return said(body, extra);
}

const Expr kOne = int_imm(1, kInt32);

TEST(Unseen, NobodyReadsTheElement) {
  EXPECT_EQ(between(put(own, idx(8), kOne)), "");
  EXPECT_EQ(between(put(own, idx(7), kOne)), "'X[i]' at i = 7 reads what 'X[7]' would write, and does not now");
}

TEST(Unseen, TheMemoryIsTheFunctionsOwn) {
  EXPECT_EQ(between(put(a, idx(0), kOne)), "'A' is no memory of the function's own");
  const Stmt extra = put(own, idx(8), kOne);
  const MeshShape mesh = mesh_xy(1, 2);
  const FunctionRef f = mesh_function("f", mesh, {}, {a, b}, seq({alloc(own), extra}));
  EXPECT_EQ(text_of(judged(f, {extra})), "other cores may read 'X'");
}

TEST(Unseen, TheElementIsInsideOfTheBuffer) {
  EXPECT_EQ(between(put(own, idx(9), kOne)), "'X[9]' may be past the end where the nest does not run");
  EXPECT_EQ(between(put(own, idx(8), element(b, idx(8)))), "'B[8]' may be past the end where the nest does not run");
}

TEST(Unseen, TheValueIsDefined) {
  EXPECT_EQ(between(put(own, idx(8), floor_div(element(b, idx(0)), element(b, idx(1))))),
            "a division would run for more operands");
}

TEST(Unseen, WhatItReadsWasWritten) {
  const std::string nothing = "'Y[0]' may hold nothing where the nest does not run";
  const Stmt extra = put(own, idx(8), element(other, idx(0))), fill = put(other, idx(0), kOne);
  EXPECT_EQ(between(extra), nothing);
  EXPECT_EQ(between(extra, {fill}), "");
  EXPECT_EQ(between(extra, {put(other, idx(1), kOne)}), nothing) << "another element";
  const Stmt sometimes = if_then(less(int_imm(0, kInt32), element(b, idx(0))), fill);
  EXPECT_EQ(between(extra, {sometimes}), nothing) << "not always";
  EXPECT_EQ(said({alloc(own), alloc(other), sometimes, loop(k, extra)}, extra), nothing) << "under another condition";
  EXPECT_EQ(said({alloc(own), alloc(other), extra, fill}, extra), nothing) << "too late";
  const FunctionRef both = function("f", {a, b}, seq({alloc(own), alloc(other), fill, extra}));
  EXPECT_EQ(text_of(judged(both, {fill, extra})), nothing) << "by another one that is added";
}

TEST(Unseen, AnUpdateOfTheElementReadsItForNobody) {
  const Stmt extra = put(own, idx(8), kOne), update = store(own, {idx(8)}, kOne, {}, StoreMode::Add);
  EXPECT_EQ(said({alloc(own), extra, update}, extra), "");
}

/// Each iteration has memory of its own.
TEST(Unseen, ReadsOfOtherMemoryAreNone) {
  const Stmt extra = put(own, k, kOne), reads = put(a, k, element(own, idx(7) - Expr(k)));
  EXPECT_EQ(said({loop(k, seq({alloc(own), extra, reads}))}, extra), "");
  EXPECT_NE(said({alloc(own), loop(k, seq({extra, reads}))}, extra), "");
}

}  // namespace
}  // namespace helve::testing
