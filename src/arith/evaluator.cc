// Expressions as lists of steps, each part once.
// A part without a value is no fault of the whole: `and`, `or` and selections may not need it.
#include "helve/arith/evaluator.h"

#include <algorithm>
#include <array>
#include <functional>
#include <unordered_map>

#include "fold.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/rounding.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

constexpr DType kLargest{TypeCode::UInt, 64};  // of which an int64 holds the bits

std::optional<int64_t> converted(int64_t value, DType from, DType to) {
  if (to.is_bool()) return value != 0;
  if (to.is_index() && from == kLargest && value < 0) return std::nullopt;
  return wrap_to(value, to);
}

}  // namespace

Evaluator::Evaluator(const Expr& e, const std::vector<VarRef>& vars) {
  HELVE_CHECK(e->dtype.is_integer() || e->dtype.is_bool(), "only integers and conditions are evaluated");
  std::unordered_map<const ExprNode*, size_t> places;
  const std::function<size_t(const Expr&)> add = [&](const Expr& part) {
    if (const auto known = places.find(part.get()); known != places.end()) return known->second;
    Step step;
    step.dtype = part->dtype;
    if (const IntImm* n = as<IntImm>(part)) {
      step.kind = Kind::Constant;
      step.value = n->value;
    } else if (const Var* var = as<Var>(part)) {
      const auto at = std::find_if(vars.begin(), vars.end(), [&](const VarRef& each) { return each.get() == var; });
      if (at != vars.end()) step.kind = Kind::Variable;
      step.value = at - vars.begin();
    } else if (const Cast* n = as<Cast>(part)) {
      if (!part->dtype.is_float() && !n->value->dtype.is_float()) step.kind = Kind::Cast;
      step.operand = n->value->dtype;
      step.args = {add(n->value)};
    } else if (const Apply* n = as<Apply>(part)) {
      step.kind = Kind::Apply;
      step.op = n->op;
      step.operand = n->args[0]->dtype;
      for (const Expr& arg : n->args) step.args.push_back(add(arg));
    }
    steps_.push_back(std::move(step));
    return places.emplace(part.get(), steps_.size() - 1).first->second;
  };
  add(e);
}

std::optional<int64_t> Evaluator::value_of(const Step& step, std::span<const int64_t> values,
                                           const std::vector<std::optional<int64_t>>& known) const {
  const auto arg = [&](size_t n) { return known[step.args[n]]; };
  switch (step.kind) {
    case Kind::Unknown: return std::nullopt;
    case Kind::Constant: return step.value;
    case Kind::Variable: return values[static_cast<size_t>(step.value)];
    case Kind::Cast: return arg(0) ? converted(*arg(0), step.operand, step.dtype) : std::nullopt;
    case Kind::Apply: break;
  }
  if (step.operand.is_float() || !arg(0)) return std::nullopt;
  if (step.op == Op::Select) return arg(*arg(0) != 0 ? 1 : 2);
  if ((step.op == Op::And && *arg(0) == 0) || (step.op == Op::Or && *arg(0) != 0)) return *arg(0);
  std::array<int64_t, 2> operands = {*arg(0), 0};
  if (step.args.size() > operands.size()) return std::nullopt;
  if (step.args.size() == 2) {
    if (!arg(1)) return std::nullopt;
    operands[1] = *arg(1);
  }
  return fold_values(step.op, step.operand, std::span(operands).first(step.args.size()));
}

std::optional<int64_t> Evaluator::at(std::span<const int64_t> values) const {
  std::vector<std::optional<int64_t>> known;
  known.reserve(steps_.size());
  for (const Step& step : steps_) known.push_back(value_of(step, values, known));
  if (steps_.back().dtype == kLargest && known.back() && *known.back() < 0) return std::nullopt;
  return known.back();
}

}  // namespace helve
