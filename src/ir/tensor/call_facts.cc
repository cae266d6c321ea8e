// What holds in every call of a function, and what a function may assume of its calls.
// Ranges of extents are bound, and not only assumed, so that interval arithmetic has them at once.
#include "helve/ir/tensor/call_facts.h"

#include <fmt/format.h>

#include <algorithm>

#include "helve/arith/simplify.h"
#include "helve/ir/expr/visit.h"

namespace helve {

namespace {

bool is_of_call(const Function& f, const Var* var) {
  const auto is_it = [&](const VarRef& dim) { return dim.get() == var; };
  if (std::any_of(f.dims.begin(), f.dims.end(), is_it)) return true;
  return std::any_of(f.params.begin(), f.params.end(), [&](const Param& param) {
    const VarRef* scalar = std::get_if<VarRef>(&param);
    return scalar && scalar->get() == var && var->dtype.is_integer();
  });
}

/// The fault of one node of a condition.
std::optional<AssumptionFault> fault_of(const Function& f, const Expr& e) {
  const std::string remedy = "compare extents, constants and integer parameters";
  if (const Var* var = as<Var>(e)) {
    if (is_of_call(f, var)) return std::nullopt;
    return AssumptionFault{fmt::format("'{}' is no extent and no integer parameter", var->name), remedy};
  }
  const Cast* cast = as<Cast>(e);
  const Apply* node = as<Apply>(e);
  if (!cast && !node && !as<IntImm>(e)) return AssumptionFault{"it is no arithmetic of integers", remedy};
  std::optional<DType> other;
  if (cast && !(cast->dtype.is_index() && as<Var>(cast->value))) other = cast->dtype;
  for (const Expr& operand : node ? node->args : std::vector<Expr>{}) {
    if (!operand->dtype.is_index() && !operand->dtype.is_bool()) other = operand->dtype;
  }
  if (!other) return std::nullopt;
  return AssumptionFault{fmt::format("it computes with {}", to_string(*other)),
                         "compute with T.index(k) of a parameter"};
}

}  // namespace

std::vector<Expr> conditions_of_calls(const Function& f) {
  std::vector<Expr> out;
  for (const VarRef& dim : f.dims) out.push_back(apply(Op::Le, {int_imm(0), Expr(dim)}));
  for (const Assumption& each : f.assumptions) out.push_back(each.condition);
  return out;
}

Facts facts_of_calls(const Function& f) {
  Facts out;
  for (const VarRef& dim : f.dims) out.bind(dim, {0, std::nullopt});
  for (const Assumption& each : f.assumptions) out.assume(each.condition);
  return out;
}

std::optional<AssumptionFault> fault_of_assumption(const Function& f, const Expr& condition) {
  if (!condition->dtype.is_bool()) {
    return AssumptionFault{"it is no condition", "compare extents, constants and integer parameters"};
  }
  if (has_load(condition))
    return AssumptionFault{"it reads memory", "compare extents, constants and integer parameters"};
  std::optional<AssumptionFault> fault;
  walk(condition, [&](const Expr& e) {
    if (!fault) fault = fault_of(f, e);
  });
  if (fault) return fault;
  Facts extents;
  for (const VarRef& dim : f.dims) extents.bind(dim, {0, std::nullopt});
  const Expr value = simplify(condition, extents);
  const int64_t* known = int_value(value);
  if (known && *known == 0) return AssumptionFault{"it never holds", "assume what some calls meet"};
  return std::nullopt;
}

FunctionRef with_assumption(const FunctionRef& f, const Expr& condition, const Span& span) {
  if (can_prove(condition, facts_of_calls(*f))) return f;
  Ref<Function> out = make_ref<Function>(*f);
  out->assumptions.push_back({condition, span});
  return FunctionRef(out);
}

}  // namespace helve
