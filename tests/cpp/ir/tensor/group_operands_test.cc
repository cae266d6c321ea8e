// Operands that are the same for a group: which they are, what is mapped in them, and where a permutation takes from.
#include "helve/ir/tensor/group_operands.h"

#include <gtest/gtest.h>

#include <limits>

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/equal.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/tensor/equal.h"

namespace helve {
namespace {

const VarRef i = make_var("i"), k = make_var("k"), me = make_var("me");
const std::string kX = "x";

Region box(const char* name) { return whole_region(make_buffer(name, kFloat32, MemoryScope::Shared, {int_imm(4)})); }

Ref<const TileOp> collective(TileOpcode op, std::vector<TileOperand> rest) {
  static const Region src = box("S"), dst = box("D");
  rest.insert(rest.begin(), {src, dst});
  return Ref<const TileOp>(as<TileOp>(tile_op(op, std::move(rest))));
}

std::string texts(const TileOp& op) {
  std::string out;
  for_each_of_group(
      op, [&](size_t at, const Expr& e) { out += std::string(op.row().params[at].name) + " " + to_text(e) + "; "; });
  return out;
}

TEST(GroupOperands, AreRootsShiftsSourcesAndCores) {
  EXPECT_EQ(texts(*collective(TileOpcode::CommBroadcast, {Expr(i), kX})), "root i; ");
  EXPECT_EQ(texts(*collective(TileOpcode::CommReduce, {std::string("sum")})), "root 0; ");
  EXPECT_EQ(texts(*collective(TileOpcode::CommPermute, {int64_t{2}, kX})), "shift 2; ");
  EXPECT_EQ(texts(*collective(TileOpcode::CommPermute, {int64_t{1}, kX, IndexMap{k, Expr(k) - Expr(i)}})),
            "shift 1; source k - i; ");
  EXPECT_EQ(texts(*collective(TileOpcode::CommPut,
                              {std::vector<Expr>{Expr(i), int_imm(1)}, std::vector<Expr>{int_imm(0), int_imm(2)}})),
            "src_core i; src_core 1; dst_core 0; dst_core 2; ");
  EXPECT_EQ(texts(*collective(TileOpcode::CommAllReduce, {std::string("sum"), kX})), "");
}

TEST(GroupOperands, AreMappedInTheLargestPartsWithoutTheVariableOfAMap) {
  const Expr value = floor_mod(Expr(k) + Expr(i) * int_imm(2), Expr(i) + int_imm(3)) - Expr(k);
  const auto op = collective(TileOpcode::CommPermute, {int64_t{1}, kX, IndexMap{k, value}});
  std::string seen;
  const auto out = map_of_group(*op, [&](size_t, const Expr& e) {
    seen += to_text(e) + "; ";
    return int_value(e) ? e : Expr(me);
  });
  EXPECT_EQ(seen, "1; i * 2; i + 3; ");
  EXPECT_EQ(to_text(std::get<IndexMap>(out->operands[4]).value), "(k + me) % me - k");
  EXPECT_EQ(map_of_group(*op, [](size_t, const Expr& e) { return e; }).get(), op.get());
}

/// What is mapped of a map of `k` with this value, and the map with `me` and conditions for it.
std::pair<std::string, std::string> mapped(const Expr& value) {
  const auto op = collective(TileOpcode::CommPermute, {int64_t{1}, kX, IndexMap{k, value}});
  std::string seen;
  const auto out = map_of_group(*op, [&](size_t at, const Expr& e) {
    if (op->row().params[at].name != "source") return e;
    seen += to_text(e) + "; ";
    return e->dtype.is_bool() ? Expr(make_var("b", kBool)) : Expr(me);
  });
  return {seen, to_text(std::get<IndexMap>(out->operands[4]).value)};
}

TEST(GroupOperands, OfAMapKeepTheConditionsUnderWhichTheyHaveAValue) {
  using Pair = std::pair<std::string, std::string>;
  const BufferRef s = make_buffer("S", kIndex, MemoryScope::Shared, {int_imm(4)});
  const Expr at = load(s, {Expr(i)}), first = load(s, {int_imm(0)}), small = less(Expr(i), int_imm(4));
  const Expr by_k = less(Expr(k), int_imm(2));
  EXPECT_EQ(mapped(select(small, Expr(k) - at, Expr(k))),
            Pair("i < 4; T.if_then_else(i < 4, S[i], 0); ", "T.if_then_else(b, k - me, k)"));
  EXPECT_EQ(mapped(select(small, Expr(k), Expr(k) - at)),
            Pair("i < 4; T.if_then_else(not i < 4, S[i], 0); ", "T.if_then_else(b, k, k - me)"));
  EXPECT_EQ(mapped(select(small, Expr(k) - first - Expr(i) * int_imm(2), Expr(k))),
            Pair("i < 4; S[0]; i * 2; ", "T.if_then_else(b, k - me - me, k)"));
  EXPECT_EQ(mapped(select(by_k, Expr(k) - first, Expr(k) - floor_div(first, Expr(i)))),
            Pair("2; S[0]; S[0]; i; ", "T.if_then_else(k < me, k - me, k - me // me)"));
  EXPECT_EQ(mapped(select(by_k, Expr(k) - at, Expr(k))), Pair("2; ", "T.if_then_else(k < me, k - S[i], k)"));
  EXPECT_EQ(mapped(select(logical_and(by_k, less(at, int_imm(1))), Expr(k), int_imm(0))),
            Pair("2; 1; 0; ", "T.if_then_else(k < me and S[i] < me, k, me)"));
}

TEST(GroupOperands, SayWhereAPermutationTakesFrom) {
  const IndexMap ring = source_of(*collective(TileOpcode::CommPermute, {Expr(i), kX}), 4);
  EXPECT_EQ(to_text(ring.value), "T.if_then_else(k < i % 4, k + (4 - i % 4), k - i % 4)");
  const int64_t far = std::numeric_limits<int64_t>::min();
  EXPECT_EQ(to_text(source_of(*collective(TileOpcode::CommPermute, {far, kX}), 3).value), "(k - -2) % 3");
  EXPECT_EQ(to_text(source_of(*collective(TileOpcode::CommPermute, {int64_t{1}, kX}), 3).value), "(k - 1) % 3");
  const IndexMap line =
      source_of(*collective(TileOpcode::CommPermute, {int64_t{1}, kX, IndexMap{me, Expr(i) - Expr(me)}}), 4);
  EXPECT_EQ(line.var.get(), me.get());
}

TEST(GroupOperands, KeepDestinations) {
  EXPECT_TRUE(keeps_destinations(*collective(TileOpcode::CommGather, {int64_t{0}})));
  EXPECT_TRUE(keeps_destinations(*collective(TileOpcode::CommReduce, {})));
  EXPECT_TRUE(keeps_destinations(
      *collective(TileOpcode::CommPut, {std::vector<Expr>{int_imm(0)}, std::vector<Expr>{int_imm(1)}})));
  EXPECT_FALSE(keeps_destinations(*collective(TileOpcode::CommBroadcast, {int64_t{0}})));
  EXPECT_FALSE(keeps_destinations(*collective(TileOpcode::CommScatter, {int64_t{0}})));
  EXPECT_FALSE(keeps_destinations(*collective(TileOpcode::CommPermute, {})));
  EXPECT_TRUE(keeps_destinations(*collective(TileOpcode::CommPermute, {int64_t{1}, kX, IndexMap{k, Expr(k)}})));
}

TEST(GroupOperands, MapsAreEqualByWhatTheyCompute) {
  const auto permute = [](const VarRef& var, const Expr& value) {
    return Stmt(collective(TileOpcode::CommPermute, {int64_t{1}, kX, IndexMap{var, value}}));
  };
  EXPECT_TRUE(structural_equal(permute(k, Expr(k) - Expr(i)), permute(me, Expr(me) - Expr(i))));
  EXPECT_FALSE(structural_equal(permute(k, Expr(k) - Expr(i)), permute(me, Expr(me) - Expr(me))));
}

}  // namespace
}  // namespace helve
