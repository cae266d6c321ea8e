// Chains of conditions: their order, their shape, their text.
#include "helve/ir/expr/chain.h"

#include <gtest/gtest.h>

#include "helve/ir/expr/text.h"
#include "helve/ir/expr/visit.h"
#include "helve/support/text.h"

namespace helve {
namespace {

std::vector<Expr> conditions(size_t count, const std::string& name = "p") {
  std::vector<Expr> out;
  for (size_t i = 0; i < count; ++i) out.push_back(Expr(make_var(name + std::to_string(i), kBool)));
  return out;
}

std::string flat(const std::vector<Expr>& parts, const char* separator) {
  return join(parts, separator, [](const Expr& e) { return to_text(e); });
}

TEST(Chain, KeepsTheOrderAndStaysShallow) {
  for (const size_t count : {1u, 2u, 3u, 16u, 17u, 31u, 32u, 33u, 100u, 900u, 3000u, 20000u}) {
    const std::vector<Expr> parts = conditions(count);
    const Expr all = chain(Op::And, parts);
    EXPECT_EQ(operands_of_chain(all, Op::And), parts);
    EXPECT_LE(all->depth(), 30) << count;
    EXPECT_EQ(to_text(all), flat(parts, " and ")) << count;
  }
}

TEST(Chain, IsASpineWhileItIsShort) {
  std::vector<Expr> parts = conditions(kChainSpine);
  Expr spine = parts[0];
  for (size_t i = 1; i < parts.size(); ++i) spine = logical_and(spine, parts[i]);
  EXPECT_EQ(chain(Op::And, parts, {}, spine), spine);
}

TEST(Chain, ReusesWhatIsEqual) {
  const std::vector<Expr> parts = conditions(300);
  const Expr all = chain(Op::Or, parts);
  EXPECT_EQ(chain(Op::Or, parts, {}, all), all);
  std::vector<Expr> other = parts;
  other.back() = bool_imm(false);
  const Expr changed = chain(Op::Or, other, {}, all);
  EXPECT_EQ(as<Apply>(changed)->args[0], as<Apply>(all)->args[0]);
  EXPECT_EQ(operands_of_chain(changed, Op::Or), other);
}

TEST(Chain, TextShowsTheGroupsOfAnotherShape) {
  const std::vector<Expr> p = conditions(20), q = conditions(20, "q");
  const Expr left = chain(Op::And, p), right = chain(Op::And, q);
  // Two halves are one chain of them all; a longer second half, or one of a third, is not.
  EXPECT_EQ(to_text(logical_and(left, right)), flat(p, " and ") + " and " + flat(q, " and "));
  const Expr more = logical_and(right, Expr(make_var("r", kBool)));
  EXPECT_EQ(to_text(more), "(" + flat(q, " and ") + ") and r");
  EXPECT_EQ(to_text(logical_and(p[0], right)), "p0 and (" + flat(q, " and ") + ")");
  EXPECT_EQ(to_text(logical_and(p[0], logical_and(p[1], p[2]))), "p0 and (p1 and p2)");
  EXPECT_EQ(to_text(logical_and(logical_and(p[0], p[1]), p[2])), "p0 and p1 and p2");
  EXPECT_EQ(to_text(apply(Op::Or, {left, chain(Op::Or, q)})),
            "(" + flat(p, " and ") + ") or (" + flat(q, " or ") + ")");
}

TEST(Chain, OfNothingHolds) { EXPECT_EQ(to_text(conjunction({})), "True"); }

}  // namespace
}  // namespace helve
