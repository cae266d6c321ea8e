// Termination: each rule makes an expression smaller in the order that rules.cc states.
// The order is a polynomial in the weights of the operands, monotone in each of them, so a rule that decreases it at
// the root decreases the whole expression; a natural number cannot decrease for ever.
#include <gtest/gtest.h>

#include <algorithm>

#include "evaluate.h"
#include "helve/arith/rules.h"
#include "helve/ir/expr/visit.h"

namespace helve {
namespace {

using namespace helve::testing;

/// The polynomials of rules.cc.
Wide weight(const Expr& e) {
  if (const IntImm* i = as<IntImm>(e)) return i->value < 0 ? 10 : 1;
  const Apply* node = as<Apply>(e);
  if (!node) return 1;
  std::vector<Wide> w;
  for (const Expr& arg : node->args) w.push_back(weight(arg));
  switch (node->op) {
    case Op::FloorDiv: return 2 * w[0] + w[1] + 1;
    case Op::ShiftLeft:
    case Op::ShiftRight: return 3 * w[0] + w[1] + 5;
    case Op::BitAnd: return w[0] + w[1] + 20;
    case Op::BitNot: return w[0] + 20;
    case Op::And:
    case Op::Or: return w[0] + 2 * w[1] + 1;
    case Op::Not: return 2 * w[0];
    case Op::Select: return 3 * w[0] + w[1] + w[2] + 1;
    case Op::Neg: return w[0] + 2;
    default: {
      Wide total = 1;
      for (Wide each : w) total += each;
      return total;
    }
  }
}

class Instances {
 public:
  /// An operand of random size.
  Expr operand(DType dtype, int depth) {
    if (dtype.is_bool()) {
      if (depth == 0 || random_() % 3 == 0) return Expr(bool_);
      const Expr a = operand(kIndex, depth - 1), b = operand(kIndex, depth - 1);
      switch (random_() % 4) {
        case 0: return less(a, b);
        case 1: return apply(Op::Or, {operand(kBool, depth - 1), operand(kBool, depth - 1)});
        case 2: return apply(Op::Not, {operand(kBool, depth - 1)});
        default: return logical_and(operand(kBool, depth - 1), operand(kBool, depth - 1));
      }
    }
    if (depth == 0 || random_() % 3 == 0)
      return random_() % 2 == 0 ? Expr(var_) : int_imm(static_cast<int64_t>(random_() % 9) - 4);
    const Expr a = operand(kIndex, depth - 1), b = operand(kIndex, depth - 1);
    switch (random_() % 7) {
      case 0: return a + b;
      case 1: return a - b;
      case 2: return floor_div(a, int_imm(3));
      case 3: return floor_mod(a, int_imm(-5));
      case 4: return apply(Op::ShiftLeft, {a, int_imm(2)});
      case 5: return apply(Op::BitNot, {a});
      default: return min(a, b);
    }
  }

  int64_t constant() {
    static constexpr int64_t kSome[] = {-12, -3, -1, 0, 1, 2, 3, 4, 6, 7, 8, 12, 15, 31, 32, 62};
    return kSome[random_() % 16];
  }

  /// Values for the variables of the left side under which the condition holds; false when none was found.
  bool bind(const std::vector<Expr>& left, const Expr& condition, Bindings& bindings) {
    for (int tries = 0; tries < 400; ++tries) {
      bindings.clear();
      for (const Expr& side : left) {
        walk(side, [&](const Expr& e) {
          const Var* var = as<Var>(e);
          if (!var || std::any_of(bindings.begin(), bindings.end(), [&](const auto& b) { return b.first == var; }))
            return;
          const bool fixed = std::any_of(pattern_constants().begin(), pattern_constants().end(),
                                         [&](const VarRef& c) { return c.get() == var; });
          bindings.emplace_back(var, fixed ? int_imm(constant()) : operand(var->dtype, 3));
        });
      }
      if (holds(condition, bindings)) return true;
    }
    return false;
  }

 private:
  std::mt19937_64 random_{11};
  VarRef var_ = make_var("v");
  VarRef bool_ = make_var("b", kBool);
};

TEST(Order, EveryRewriteRuleDecreasesIt) {
  Instances instances;
  for (const Rule& rule : rewrite_rules()) {
    int checked = 0;
    for (int k = 0; k < 200; ++k) {
      Bindings bindings;
      ASSERT_TRUE(instances.bind({rule.left}, rule.condition, bindings))
          << rule.name << ": no constants meet its condition";
      const Expr before = instantiate(rule.left, bindings, kIndex, {}),
                 after = instantiate(rule.right, bindings, kIndex, {});
      if (!before || !after) continue;  // a constant part that does not fit: the rule does not apply
      ++checked;
      ASSERT_TRUE(weight(before) > weight(after))
          << rule.name << ": " << to_text(before) << " becomes " << to_text(after);
    }
    EXPECT_GT(checked, 100) << rule.name;
  }
}

TEST(Order, EverySumRuleDecreasesIt) {
  Instances instances;
  for (const SumRule& rule : sum_rules()) {
    int checked = 0;
    for (int k = 0; k < 200; ++k) {
      Bindings bindings;
      ASSERT_TRUE(instances.bind({rule.first, rule.factor, rule.second}, rule.condition, bindings)) << rule.name;
      const Expr first = instantiate(rule.first, bindings, kIndex, {}),
                 factor = instantiate(rule.factor, bindings, kIndex, {});
      const Expr second = instantiate(rule.second, bindings, kIndex, {}),
                 right = instantiate(rule.right, bindings, kIndex, {});
      if (!first || !factor || !second || !right) continue;
      ++checked;
      ASSERT_TRUE(weight(first * factor + second) > weight(right)) << rule.name;
    }
    EXPECT_GT(checked, 100) << rule.name;
  }
}

}  // namespace
}  // namespace helve
