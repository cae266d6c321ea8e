// Which reductions become statements of their own, for statements that are built node by node.
#include <gtest/gtest.h>

#include "helve/ir/expr/text.h"
#include "helve/notation/index_notation.h"

namespace helve::notation {
namespace {

const Index i{make_var("i")}, j{make_var("j")}, k{make_var("k")};

BufferRef tensor(const char* name, std::vector<int64_t> shape) {
  std::vector<Expr> extents;
  for (int64_t extent : shape) extents.push_back(int_imm(extent));
  return make_buffer(name, kFloat32, MemoryScope::Param, std::move(extents));
}

const BufferRef X = tensor("X", {3, 4}), Y = tensor("Y", {3, 4}), y = tensor("y", {3});

IndexExpr at(const Index& row, const Index& column) { return {load(X, {row.var, column.var})}; }

/// "target[subscripts] = value" of each statement, with the bodies of reductions in square brackets.
std::vector<std::string> hoisted(const BufferRef& target, const std::vector<IndexOperand>& left, IndexExpr value) {
  std::vector<std::string> out;
  for (const Assignment& a : hoist(place_sums(assign(target, left, std::move(value), {i, j, k}, std::nullopt)))) {
    std::string text = to_text(load(a.target, a.subscripts)) + " = " + to_text(a.value.value);
    for (const Reduction& r : a.value.reductions) text += " [" + to_text(r.body) + "]";
    out.push_back(std::move(text));
  }
  return out;
}

using Texts = std::vector<std::string>;

TEST(Hoist, AReductionOfFewerIndicesThanTheLeftSide) {
  const IndexExpr sum = reduce(ReduceKind::Sum, {k}, at(i, k));
  EXPECT_EQ(hoisted(Y, {IndexExpr{i.var}, IndexExpr{j.var}}, apply(Op::Div, {at(i, j), sum})),
            (Texts{"acc[i] = acc [X[i, k]]", "Y[i, j] = X[i, j] / acc[i]"}));
}

TEST(Hoist, NothingThatUsesAllIndices) {
  const IndexExpr sum = reduce(ReduceKind::Sum, {k}, at(i, k));
  EXPECT_EQ(hoisted(y, {IndexExpr{i.var}}, apply(Op::Mul, {sum, 2.0})), (Texts{"y[i] = acc * 2.0 [X[i, k]]"}));
}

TEST(Hoist, AReductionOutOfTheLoopOfAnother) {
  // The maximum depends on the row k alone; the sum is over the elements of row i.
  const IndexExpr most = reduce(ReduceKind::Max, {j}, {load(Y, {k.var, j.var})});
  const IndexExpr weighted = apply(Op::Mul, {IndexExpr{load(y, {k.var})}, most});
  const IndexExpr sum = reduce(ReduceKind::Sum, {k}, apply(Op::Mul, {weighted, IndexExpr{load(y, {i.var})}}));
  EXPECT_EQ(hoisted(tensor("z", {3}), {IndexExpr{i.var}}, sum),
            (Texts{"acc[k] = acc [Y[k, j]]", "z[i] = acc [y[k] * acc[k] * y[i]]"}));
}

TEST(Hoist, ASharedReductionOnce) {
  const IndexExpr most = reduce(ReduceKind::Max, {k}, at(i, k));
  const IndexExpr sum = reduce(ReduceKind::Sum, {k}, apply(Op::Sub, {at(i, k), most}));
  EXPECT_EQ(
      hoisted(Y, {IndexExpr{i.var}, IndexExpr{j.var}}, apply(Op::Mul, {sum, apply(Op::Sub, {at(i, j), most})})),
      (Texts{"acc[i] = acc [X[i, k]]", "acc[i] = acc [X[i, k] - acc[i]]", "Y[i, j] = acc[i] * (X[i, j] - acc[i])"}));
}

}  // namespace
}  // namespace helve::notation
