// Every row of the rule tables, on all small values and on random large ones.
#include "helve/arith/rules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "evaluate.h"
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
      if (!::testing::Test::HasFatalFailure()) expect_law(rule.name, rule.left, rule.right, rule.condition, at, applied);
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
  for (const SumRule& rule : sum_rules()) check(rule.name, rule.first * rule.factor + rule.second, rule.right, rule.condition);
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
        bindings.emplace_back(var, constant ? int_imm(var->name == "a" ? a : b) : Expr(make_var(var->name + "0", dtype)));
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
