// Matrices between memory and registers: which layouts the instructions serve, and whose row is whose.
#include "helve/ir/tensor/matrix_move.h"

#include <gtest/gtest.h>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/visit.h"
#include "helve/ir/tensor/buffer_layout.h"
#include "helve/layout/notation.h"

namespace helve {
namespace {

std::optional<MatrixMove> move_of(const std::string& text, const std::vector<int64_t>& shape) {
  std::string reason;
  return matrix_move(parse_layout(text), shape, &reason);
}

/// What an instruction does, from its definition (PTX ISA, ldmatrix): lane l names row l % 8 of matrix l / 8, thread t
/// gets the pair t % 4 of row t / 4 of each matrix, of column t / 4 in a transposed move. Every element has to arrive
/// where the layout says.
void expect_serves(const std::string& text, const std::vector<int64_t>& shape, int64_t threads) {
  const Layout layout = parse_layout(text);
  const std::optional<MatrixMove> move = move_of(text, shape);
  ASSERT_TRUE(move) << text;
  const VarRef tx = make_var("tx");
  const auto row_of = [&](int64_t thread, int64_t first) {
    std::vector<int64_t> at;
    for (const Expr& e : matrix_row(*move, Expr(tx), first)) {
      at.push_back(*constant_value(substitute(e, {{tx.get(), int_imm(thread)}})));
    }
    return at;
  };
  for (int64_t t = 0; t < threads; ++t) {
    for (int64_t matrix = 0; matrix < move->matrices; ++matrix) {
      const int64_t first = matrix / move->at_once * move->at_once;
      for (int64_t k : {0, 1}) {
        const int64_t across = t % 32 / 4, along = 2 * (t % 4) + k;
        const int64_t row = move->transposed ? along : across, column = move->transposed ? across : along;
        std::vector<int64_t> at = row_of(t / 32 * 32 + 8 * (matrix - first) + row, first);
        at[1] += column;
        Point place;
        place[axes::tx()] = t;
        place[axes::reg()] = 2 * matrix + k;
        EXPECT_EQ(layout.inverse(place, shape), at) << text << ", thread " << t << ", register " << 2 * matrix + k;
      }
    }
  }
}

TEST(MatrixMove, OperandsOfTensorCores) {
  expect_serves("S[(2, 8, 2, 4, 2) : (2@reg, 4@tx, 4@reg, 1@tx, 1@reg)]", {16, 16}, 32);
  expect_serves("S[(2, 4, 2, 8) : (2@reg, 1@tx, 1@reg, 4@tx)]", {16, 8}, 32);
  expect_serves("S[(2, 8, 4, 2) : (2@reg, 4@tx, 1@tx, 1@reg)]", {16, 8}, 32);
  expect_serves("S[(2, 2, 8, 2, 4, 2) : (32@tx, 2@reg, 4@tx, 4@reg, 1@tx, 1@reg)]", {32, 16}, 64);
  expect_serves("S[(2, 8, 2, 4, 2) : (2@reg, 4@tx, 4@reg, 1@tx, 1@reg)] + R[2 : 32@tx]", {16, 16}, 64);
}

TEST(MatrixMove, AsManyAtOnceAsDivide) {
  EXPECT_EQ(move_of("S[(2, 8, 2, 4, 2) : (2@reg, 4@tx, 4@reg, 1@tx, 1@reg)]", {16, 16})->at_once, 4);
  EXPECT_EQ(move_of("S[(3, 8, 2, 4, 2) : (2@reg, 4@tx, 6@reg, 1@tx, 1@reg)]", {24, 16})->at_once, 2);
  EXPECT_EQ(move_of("S[(3, 8, 4, 2) : (2@reg, 4@tx, 1@tx, 1@reg)]", {24, 8})->at_once, 1);
}

/// An element of the part has the register that it has in the whole, counted from the part's first one.
void expect_part(const std::string& text, const std::vector<int64_t>& shape, const std::vector<int64_t>& begin,
                 const std::vector<int64_t>& extent) {
  const BufferRef plain =
      make_buffer("f", {TypeCode::Float, 16}, MemoryScope::Fragment, {int_imm(shape[0]), int_imm(shape[1])});
  const BufferRef fragment = with_layout(plain, parse_layout(text), {});
  Region region{fragment, {}};
  for (const size_t d : {0, 1}) region.ranges.push_back({int_imm(begin[d]), int_imm(extent[d]), false});
  std::string reason;
  const std::optional<FragmentPart> part = fragment_part(region, &reason);
  ASSERT_TRUE(part) << text << ": " << reason;
  const Layout whole = thread_layout_of(*fragment);
  for (int64_t i = 0; i < extent[0]; ++i) {
    for (int64_t j = 0; j < extent[1]; ++j) {
      Points in_part = part->layout.apply({i, j}, extent), in_whole = whole.apply({begin[0] + i, begin[1] + j}, shape);
      ASSERT_EQ(in_part.size(), in_whole.size());
      for (size_t k = 0; k < in_part.size(); ++k) {
        EXPECT_EQ(in_part[k].at(axes::tx()), in_whole[k].at(axes::tx()));
        EXPECT_EQ(in_part[k].at(axes::reg()) + part->first_register, in_whole[k].at(axes::reg()));
      }
    }
  }
}

TEST(MatrixMove, PartsOfFragments) {
  const std::string sums = "S[(2, 2, 4, 2, 8, 8, 4, 2) : (32@reg, 128@tx, 32@tx, 2@reg, 4@tx, 4@reg, 1@tx, 1@reg)]";
  expect_part(sums, {256, 64}, {0, 0}, {256, 64});
  expect_part(sums, {256, 64}, {0, 32}, {128, 32});
  expect_part(sums, {256, 64}, {128, 48}, {128, 16});
  expect_part(sums, {256, 64}, {0, 16}, {256, 16});
}

TEST(MatrixMove, PartsThatSomeThreadsHold) {
  const BufferRef plain = make_buffer("f", {TypeCode::Float, 16}, MemoryScope::Fragment, {int_imm(64), int_imm(32)});
  const BufferRef fragment = with_layout(
      plain, parse_layout("S[(4, 2, 8, 2, 2, 4, 2) : (32@tx, 2@reg, 4@tx, 128@tx, 4@reg, 1@tx, 1@reg)]"), {});
  std::string reason;
  const auto part = [&](int64_t row, int64_t rows, int64_t column, int64_t columns) {
    return fragment_part({fragment, {{int_imm(row), int_imm(rows)}, {int_imm(column), int_imm(columns)}}}, &reason);
  };
  EXPECT_TRUE(part(0, 64, 0, 32));
  EXPECT_FALSE(part(0, 64, 16, 16));
  EXPECT_EQ(reason, "some threads hold nothing of the part");
  EXPECT_FALSE(part(0, 16, 0, 32));
  EXPECT_FALSE(part(0, 64, 0, 0));
  EXPECT_EQ(reason, "the part of the fragment has no constant bounds");
}

TEST(MatrixMove, OtherLayoutsAreRefused) {
  EXPECT_FALSE(move_of("S[(8, 8) : (4@tx, 1@tx)]", {8, 8}));
  EXPECT_FALSE(move_of("S[(8, 4, 2) : (1@tx, 8@tx, 1@reg)]", {8, 8}));
  EXPECT_FALSE(move_of("S[(8, 4, 2) : (4@tx, 1@tx, 1@reg)]", {4, 16}));
  EXPECT_FALSE(move_of("S[(2, 8, 4, 2) : (4@reg, 4@tx, 1@tx, 1@reg)]", {16, 8}));
}

}  // namespace
}  // namespace helve
