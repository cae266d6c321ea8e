// Every row of the rule tables, on all small values and on random large ones.
#include "helve/arith/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>

#include "evaluate.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/visit.h"

namespace helve {
namespace {

using namespace helve::testing;

std::vector<const Var*> variables_of(const std::vector<Expr>& parts) {
  std::vector<const Var*> out;
  for (const Expr& part : parts) {
    if (!part) continue;
    walk(part, [&](const Expr& e) {
      const Var* var = as<Var>(e);
      if (var && std::find(out.begin(), out.end(), var) == out.end()) out.push_back(var);
    });
  }
  return out;
}

/// Calls `f` with every assignment of values in [-limit, limit] (bools 0 and 1).
void for_all(const std::vector<const Var*>& vars, int limit, const std::function<void(Assignment&)>& f) {
  Assignment at;
  std::function<void(size_t)> step = [&](size_t i) {
    if (i == vars.size()) return f(at);
    const bool boolean = vars[i]->dtype.is_bool();
    for (int v = boolean ? 0 : -limit; v <= (boolean ? 1 : limit); ++v) {
      at[vars[i]] = v;
      step(i + 1);
    }
  };
  step(0);
}

void expect_law(std::string_view name, const Expr& left, const Expr& right, const Expr& condition, const Assignment& at,
                int& applied) {
  if (condition) {
    std::optional<Wide> holds = evaluate(condition, at);
    if (!holds || *holds == 0) return;
  }
  std::optional<Wide> before = evaluate(left, at);
  if (!before) return;
  ++applied;
  std::optional<Wide> after = evaluate(right, at);
  ASSERT_TRUE(after) << name << ": " << to_text(right) << " faults where " << to_text(left) << " does not";
  ASSERT_TRUE(*before == *after) << name << ": " << to_text(left) << " is not " << to_text(right);
}

/// The pattern with index nodes and variables of type `dtype`, for rules on data integers.
Expr retyped(const Expr& e, DType dtype, std::unordered_map<const Var*, Expr>& vars) {
  if (const Var* var = as<Var>(e)) {
    if (var->dtype.is_bool()) return e;
    Expr& known = vars[var];
    if (!known) known = Expr(make_var(var->name, dtype));
    return known;
  }
  if (const IntImm* i = as<IntImm>(e)) return e->dtype.is_bool() ? e : int_imm(i->value, dtype);
  const Apply* node = as<Apply>(e);
  std::vector<Expr> args;
  for (const Expr& arg : node->args) args.push_back(retyped(arg, dtype, vars));
  return Expr(make_ref<Apply>(e->dtype.is_bool() ? kBool : dtype, node->op, args));
}

TEST(Rules, HoldOnAllSmallValues) {
  for (const Rule& rule : rewrite_rules()) {
    int applied = 0;
    const auto vars = variables_of({rule.left, rule.right, rule.condition});
    EXPECT_EQ(variables_of({rule.left}).size(), vars.size()) << rule.name << ": a variable that the left side lacks";
    for_all(vars, long_tests() ? 24 : 13, [&](Assignment& at) {
      if (!::testing::Test::HasFatalFailure())
        expect_law(rule.name, rule.left, rule.right, rule.condition, at, applied);
    });
    EXPECT_GT(applied, 0) << rule.name << " is never applied";
  }
}

TEST(Rules, SumRulesHoldOnAllSmallValues) {
  for (const SumRule& rule : sum_rules()) {
    int applied = 0;
    const Expr left = rule.first * rule.factor + rule.second;
    for_all(variables_of({left, rule.right, rule.condition}), long_tests() ? 24 : 13, [&](Assignment& at) {
      if (!::testing::Test::HasFatalFailure()) expect_law(rule.name, left, rule.right, rule.condition, at, applied);
    });
    EXPECT_GT(applied, 0) << rule.name;
  }
}

TEST(Rules, HoldOnLargeValues) {
  std::mt19937_64 random(7);
  auto large = [&] {
    const int bits = static_cast<int>(random() % 40);
    const Wide magnitude = static_cast<Wide>(random() & ((uint64_t{1} << bits) - 1));
    return random() % 2 == 0 ? magnitude : -magnitude;
  };
  auto check = [&](std::string_view name, const Expr& left, const Expr& right, const Expr& condition) {
    int applied = 0;
    const auto vars = variables_of({left, right, condition});
    for (int i = 0; i < 4000; ++i) {
      Assignment at;
      for (const Var* var : vars) at[var] = var->dtype.is_bool() ? random() % 2 : large();
      if (i % 2 == 0 && vars.size() >= 2 && condition) {  // conditions of the kind a % b == 0 are rare by chance
        for (const Var* var : vars) {
          if (var->name == "b") at[var] = 1 + random() % 1000;
        }
        for (const Var* var : vars) {
          if (var->name != "a") continue;
          at[var] = 1 + random() % 1000;
          for (const Var* b : vars) {
            if (b->name == "b") at[var] *= at[b];
          }
        }
      }
      expect_law(name, left, right, condition, at, applied);
      if (::testing::Test::HasFatalFailure()) return;
    }
  };
  for (const Rule& rule : rewrite_rules()) check(rule.name, rule.left, rule.right, rule.condition);
  for (const SumRule& rule : sum_rules())
    check(rule.name, rule.first * rule.factor + rule.second, rule.right, rule.condition);
}

/// Numbers at which arithmetic on int64 goes wrong.
const std::vector<int64_t>& extremes() {
  constexpr int64_t least = std::numeric_limits<int64_t>::min(), most = std::numeric_limits<int64_t>::max();
  static const std::vector<int64_t> all = {least,
                                           least + 1,
                                           -(int64_t{1} << 62),
                                           -(int64_t{1} << 32),
                                           -8,
                                           -3,
                                           -2,
                                           -1,
                                           0,
                                           1,
                                           2,
                                           3,
                                           7,
                                           8,
                                           62,
                                           63,
                                           (int64_t{1} << 31) - 1,
                                           int64_t{1} << 32,
                                           int64_t{1} << 62,
                                           most - 1,
                                           most};
  return all;
}

TEST(Rules, RefuseWhatLeavesInt64) {
  // Constants at the ends of int64: a rule either keeps the value, computed in 128 bits, or does not fire.
  int fired = 0;
  for (const Rule& rule : rewrite_rules()) {
    if (rule.domain != RuleDomain::Index && rule.domain != RuleDomain::Integer) continue;
    const auto vars = variables_of({rule.left});
    std::function<void(size_t, Bindings&)> step = [&](size_t i, Bindings& bindings) {
      if (i < vars.size()) {
        const bool constant = std::any_of(pattern_constants().begin(), pattern_constants().end(),
                                          [&](const VarRef& c) { return c.get() == vars[i]; });
        const std::vector<int64_t> one = {0};
        for (int64_t value : constant ? extremes() : one) {
          bindings.emplace_back(vars[i], constant ? int_imm(value) : Expr(make_var("x")));
          step(i + 1, bindings);
          bindings.pop_back();
        }
        return;
      }
      const Expr left = instantiate(rule.left, bindings, kIndex, {});
      if (!left) return;
      const Expr right = apply_rules(left), whole = simplify(left);
      fired += right != Expr();
      for (int64_t x : extremes()) {
        Assignment at;
        for (const auto& [var, e] : bindings) {
          if (const Var* free = as<Var>(e)) at[free] = x;
        }
        const std::optional<Wide> before = evaluate(left, at);
        if (!before) continue;
        ASSERT_TRUE(!right || evaluate(right, at) == before) << rule.name << ": " << to_text(left) << " at " << x;
        ASSERT_TRUE(evaluate(whole, at) == before)
            << rule.name << ": " << to_text(left) << " became " << to_text(whole) << " at " << x;
      }
    };
    Bindings none;
    step(0, none);
  }
  EXPECT_GT(fired, 100);
}

TEST(Rules, OperatorsOnExtremesAreExactOrLeft) {
  const VarRef x = make_var("x");
  for (Op op :
       {Op::Add, Op::Sub, Op::Mul, Op::FloorDiv, Op::FloorMod, Op::Min, Op::Max, Op::Lt, Op::Le, Op::Eq, Op::Ne}) {
    for (int64_t a : extremes()) {
      for (int64_t b : extremes()) {
        for (int form = 0; form < 4; ++form) {
          const bool divides = op == Op::FloorDiv || op == Op::FloorMod;
          if (divides && b == 0 && form != 1) continue;  // refused by the builder
          const Expr A = int_imm(a), B = int_imm(b);
          Expr e;
          if (form == 0) e = apply(op, {A, B});
          if (form == 1) e = apply(op, {A, Expr(x)});
          if (form == 2) e = apply(op, {Expr(x) + A, B});
          if (form == 3) e = apply(op, {Expr(x) * A, B});
          const Expr out = simplify(e);
          ASSERT_EQ(simplify(out), out) << to_text(e);
          for (int64_t value : extremes()) {
            if (op == Op::Mul && form == 3) continue;  // three factors do not fit 128 bits
            const Assignment at{{x.get(), value}};
            const std::optional<Wide> before = evaluate(e, at);
            if (before) {
              ASSERT_TRUE(evaluate(out, at) == before) << to_text(e) << " became " << to_text(out) << " at " << value;
            }
          }
        }
      }
    }
  }
}

TEST(Rules, OfDataHoldModuloPowersOfTwo) {
  for (const Rule& rule : rewrite_rules()) {
    if (rule.domain != RuleDomain::Data && rule.domain != RuleDomain::Integer) continue;
    for (DType dtype : {DType{TypeCode::Int, 8}, DType{TypeCode::UInt, 8}, DType{TypeCode::Int, 4}}) {
      std::unordered_map<const Var*, Expr> vars;
      const Expr left = retyped(rule.left, dtype, vars), right = retyped(rule.right, dtype, vars);
      int applied = 0;
      for_all(variables_of({left, right}), 200, [&](Assignment& at) {
        for (auto& [var, value] : at) value = as_member(value, dtype);
        if (!::testing::Test::HasFatalFailure()) expect_law(rule.name, left, right, {}, at, applied);
      });
      EXPECT_GT(applied, 0) << rule.name;
    }
  }
}

TEST(Rules, EachRewritesItsOwnLeftSide) {
  // The tables' condition is met by these constants or, for the rules about negative divisors, by their negatives.
  for (const Rule& rule : rewrite_rules()) {
    bool fired = false;
    for (auto [a, b] : {std::pair<int64_t, int64_t>{12, 4}, {-12, 4}, {7, 4}}) {
      Bindings bindings;
      for (const Var* var : variables_of({rule.left})) {
        const bool constant = std::any_of(pattern_constants().begin(), pattern_constants().end(),
                                          [&](const VarRef& c) { return c.get() == var; });
        const bool data = rule.domain == RuleDomain::Data;
        const DType dtype = var->dtype.is_bool() ? kBool : data ? kInt32 : kIndex;
        bindings.emplace_back(var,
                              constant ? int_imm(var->name == "a" ? a : b) : Expr(make_var(var->name + "0", dtype)));
      }
      if (!holds(rule.condition, bindings)) continue;
      const Expr left = instantiate(rule.left, bindings, rule.domain == RuleDomain::Data ? kInt32 : kIndex, {});
      if (left) fired |= static_cast<bool>(apply_rules(left));
    }
    EXPECT_TRUE(fired) << rule.name;
  }
}

}  // namespace
}  // namespace helve
