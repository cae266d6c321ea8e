// Where sums stand and how far indices run, for statements that are built node by node.
#include <gtest/gtest.h>

#include "helve/ir/expr/text.h"
#include "helve/notation/index_notation.h"

namespace helve::notation {
namespace {

const VarRef i = make_var("i"), j = make_var("j");

BufferRef tensor(const char* name, std::vector<int64_t> shape) {
  std::vector<Expr> extents;
  for (int64_t extent : shape) extents.push_back(int_imm(extent));
  return make_buffer(name, kFloat32, MemoryScope::Param, std::move(extents));
}

const BufferRef A = tensor("A", {3, 4}), B = tensor("B", {3, 4}), b = tensor("b", {3}), x = tensor("x", {4}),
                y = tensor("y", {3});

Expr at(const BufferRef& buffer, std::vector<Expr> subscripts) { return load(buffer, std::move(subscripts)); }

Assignment of_y(const Expr& value) { return assign(y, {IndexExpr{i}}, {value}, {Index{i}, Index{j}}, std::nullopt); }

/// The value with the bodies of its sums in square brackets.
std::string text(const IndexExpr& e) {
  std::string out = to_text(e.value) + " |";
  for (const Reduction& r : e.reductions) out += " [" + to_text(r.body) + "]";
  return out;
}

std::string placed(const Expr& value) { return text(place_sums(of_y(value)).value); }

const Expr bi = at(b, {i}), Aij = at(A, {i, j}), Bij = at(B, {i, j}), xj = at(x, {j});

TEST(PlaceSums, OnlyTheTermThatUsesTheIndex) {
  EXPECT_EQ(placed(bi + Aij * xj), "b[i] + acc | [A[i, j] * x[j]]");
  EXPECT_EQ(placed(Aij * xj - bi), "acc - b[i] | [A[i, j] * x[j]]");
}

TEST(PlaceSums, TheWholeSumIfAllTermsUseTheIndex) { EXPECT_EQ(placed(Aij + Bij), "acc | [A[i, j] + B[i, j]]"); }

TEST(PlaceSums, BracketsChangeNothing) {
  EXPECT_EQ(placed((Aij * xj + bi) + Bij * xj), "acc + b[i] + acc | [A[i, j] * x[j]] [B[i, j] * x[j]]");
}

TEST(PlaceSums, InsideTheOnlyFactorThatUsesTheIndex) {
  EXPECT_EQ(placed((bi + Aij) * bi), "(b[i] + acc) * b[i] | [A[i, j]]");
  EXPECT_EQ(placed((bi + Aij) * xj), "acc | [(b[i] + A[i, j]) * x[j]]");
}

TEST(PlaceSums, FunctionsAreTermsAsTheyAre) {
  EXPECT_EQ(placed(apply(Op::Exp, {bi + Aij}) + bi), "acc + b[i] | [T.exp(b[i] + A[i, j])]");
}

TEST(Ranges, ExtentsOfDimensionsMustAgree) {
  const std::vector<std::pair<VarRef, Expr>> extents = index_extents(place_sums(of_y(bi + Aij * xj)));
  ASSERT_EQ(extents.size(), 2u);
  EXPECT_EQ(to_text(extents[0].second), "3");
  EXPECT_EQ(to_text(extents[1].second), "4");
  try {
    index_extents(place_sums(of_y(Aij * at(b, {j}))));
    FAIL() << "4 is not 3";
  } catch (const UserError& fault) {
    EXPECT_EQ(fault.diagnostic().code, Code::IndexExtents);
  }
}

TEST(Ranges, AnIndexNeedsOneUseAlone) {
  try {
    index_extents(place_sums(of_y(at(A, {i, j + int_imm(1)}))));
    FAIL() << "the range of j is unknown";
  } catch (const UserError& fault) {
    EXPECT_EQ(fault.diagnostic().code, Code::IndexWithoutRange);
  }
}

}  // namespace
}  // namespace helve::notation
