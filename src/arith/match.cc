// Matching and instantiation of rule patterns.
// Patterns are ordinary expressions, so the tables need no language of their own and a test can evaluate both sides.
#include <algorithm>

#include "fold.h"
#include "helve/arith/rules.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/build.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

bool is_constant_variable(const Var* var) {
  const std::vector<VarRef>& constants = pattern_constants();
  return std::any_of(constants.begin(), constants.end(), [&](const VarRef& c) { return c.get() == var; });
}

const Expr* bound(const Bindings& bindings, const Var* var) {
  for (const auto& [known, value] : bindings) {
    if (known == var) return &value;
  }
  return nullptr;
}

bool admits(RuleDomain domain, DType dtype) {
  switch (domain) {
    case RuleDomain::Index: return dtype.is_index();
    case RuleDomain::Data: return dtype.is_data_int();
    case RuleDomain::Integer: return dtype.is_integer();
    case RuleDomain::Bool: return dtype.is_bool();
    case RuleDomain::Any: return true;
  }
  HELVE_FAIL("a rule domain without types");
}

bool match_variable(const Var* var, const Expr& e, RuleDomain domain, Bindings& bindings) {
  if (const Expr* value = bound(bindings, var)) return same_expr(*value, e);
  if (var->dtype.is_bool() ? !e->dtype.is_bool() : !admits(domain, e->dtype)) return false;
  if (is_constant_variable(var) && e->kind != ExprKind::IntImm) return false;
  bindings.emplace_back(var, e);
  return true;
}

/// The value of a pattern over constants and numbers; empty when it has other variables or cannot be computed.
std::optional<int64_t> constant_part(const Expr& pattern, const Bindings& bindings) {
  if (const int64_t* value = int_value(pattern)) return *value;
  if (const Var* var = as<Var>(pattern)) {
    const Expr* value = is_constant_variable(var) ? bound(bindings, var) : nullptr;
    return value ? std::optional(*int_value(*value)) : std::nullopt;
  }
  const Apply* apply = as<Apply>(pattern);
  if (!apply) return std::nullopt;
  std::vector<int64_t> values;
  for (const Expr& arg : apply->args) {
    std::optional<int64_t> value = constant_part(arg, bindings);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  return fold_values(apply->op, apply->args[0]->dtype, values);
}

bool only_constants(const Expr& pattern) {
  if (const Var* var = as<Var>(pattern)) return is_constant_variable(var);
  const Apply* apply = as<Apply>(pattern);
  return !apply || std::all_of(apply->args.begin(), apply->args.end(), only_constants);
}

}  // namespace

bool match(const Expr& pattern, const Expr& e, RuleDomain domain, Bindings& bindings) {
  if (const Var* var = as<Var>(pattern)) return match_variable(var, e, domain, bindings);
  if (const int64_t* number = int_value(pattern)) {
    const int64_t* value = int_value(e);
    return value && *value == *number && e->dtype.is_bool() == pattern->dtype.is_bool();
  }
  const Apply* shape = as<Apply>(pattern);
  const Apply* node = as<Apply>(e);
  if (!shape || !node || shape->op != node->op) return false;
  for (size_t i = 0; i < shape->args.size(); ++i) {
    if (!match(shape->args[i], node->args[i], domain, bindings)) return false;
  }
  return true;
}

Expr instantiate(const Expr& pattern, const Bindings& bindings, DType dtype, Span span) {
  const DType type = pattern->dtype.is_bool() ? kBool : dtype;
  if (only_constants(pattern)) {
    std::optional<int64_t> value = constant_part(pattern, bindings);
    return value ? int_imm(*value, type, span) : Expr();
  }
  if (const Var* var = as<Var>(pattern)) {
    const Expr* value = bound(bindings, var);
    HELVE_CHECK(value, "a rule uses a variable on its right that its left does not have");
    return *value;
  }
  const Apply* shape = as<Apply>(pattern);
  HELVE_CHECK(shape, "a rule pattern is made of variables, integers and operators");
  std::vector<Expr> args;
  for (const Expr& arg : shape->args) {
    Expr made = instantiate(arg, bindings, dtype, span);
    if (!made) return {};
    args.push_back(std::move(made));
  }
  Ref<Apply> node = make_ref<Apply>(type, shape->op, std::move(args));
  node->span = span;
  return Expr(node);
}

bool holds(const Expr& condition, const Bindings& bindings) {
  if (!condition) return true;
  std::optional<int64_t> value = constant_part(condition, bindings);
  return value && *value != 0;
}

Expr apply_rules(const Expr& e) {
  const Apply* node = as<Apply>(e);
  if (!node) return {};
  for (const Rule& rule : rewrite_rules()) {
    const Apply* left = as<Apply>(rule.left);
    if (left->op != node->op) continue;
    Bindings bindings;
    if (!match(rule.left, e, rule.domain, bindings) || !holds(rule.condition, bindings)) continue;
    DType operand = e->dtype;  // the type of index parts of the pattern: that of the variables that are not bool
    for (const auto& [var, value] : bindings) {
      if (!var->dtype.is_bool()) operand = value->dtype;
    }
    if (Expr made = instantiate(rule.right, bindings, operand, e->span)) return made;
  }
  return {};
}

}  // namespace helve
