// From abstracted expressions to isl, operator by operator.
// Each part of an expression is translated once, however often it occurs.
#include "isl_translator.h"

#include <fmt/format.h>

#include "helve/ir/expr/build.h"

namespace helve {

std::string parameter_name(const VarRef& var) { return fmt::format("p{}", static_cast<const void*>(var.get())); }

Translator::Translator(const Engine& engine, const std::vector<VarRef>& dims, const std::vector<VarRef>& params)
    : space_(isl::manage(isl_space_set_alloc(engine->context, static_cast<unsigned>(params.size()),
                                             static_cast<unsigned>(dims.size())))) {
  // Parameters are aligned by name, so the name says which variable it is.
  for (size_t i = 0; i < params.size(); ++i) {
    const std::string name = parameter_name(params[i]);
    isl_id* id = isl_id_alloc(engine->context, name.c_str(), nullptr);
    space_ = isl::manage(isl_space_set_dim_id(space_.release(), isl_dim_param, static_cast<unsigned>(i), id));
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    add(dims[i],
        isl_aff_var_on_domain(isl_local_space_from_space(space_.copy()), isl_dim_set, static_cast<unsigned>(i)));
  }
  for (size_t i = 0; i < params.size(); ++i) {
    add(params[i],
        isl_aff_var_on_domain(isl_local_space_from_space(space_.copy()), isl_dim_param, static_cast<unsigned>(i)));
  }
}

isl::set Translator::between(const VarRef& var, int64_t least, int64_t greatest) const {
  const isl::pw_aff& value = values_.at(var.get());
  return value.ge_set(constant(least)).intersect(value.le_set(constant(greatest)));
}

isl::pw_aff Translator::value_once(const Expr& e) const {
  if (const int64_t* constant = int_value(e)) return this->constant(*constant);
  if (const Var* var = as<Var>(e)) return values_.at(var);
  const Apply* node = as<Apply>(e);
  HELVE_CHECK(node, "an expression that was not abstracted");
  const std::vector<Expr>& args = node->args;
  switch (node->op) {
    case Op::Add: return value(args[0]).add(value(args[1]));
    case Op::Sub: return value(args[0]).sub(value(args[1]));
    case Op::Neg: return value(args[0]).neg();
    case Op::Min: return value(args[0]).min(value(args[1]));
    case Op::Max: return value(args[0]).max(value(args[1]));
    case Op::Mul: {
      const bool left = int_value(args[0]);
      return value(args[left ? 1 : 0]).scale(number(*int_value(args[left ? 0 : 1])));
    }
    case Op::FloorDiv: return value(args[0]).scale_down(number(*int_value(args[1]))).floor();
    case Op::Select: {
      const isl::set chosen = condition(args[0]);
      const isl::pw_aff otherwise = value(args[2]).subtract_domain(chosen);
      return value(args[1]).intersect_domain(chosen).union_add(otherwise);
    }
    default: HELVE_FAIL("an operator that was not abstracted");
  }
}

isl::set Translator::condition_once(const Expr& e) const {
  if (const int64_t* truth = int_value(e)) return *truth ? space_.universe_set() : isl::set::empty(space_);
  const Apply* node = as<Apply>(e);
  HELVE_CHECK(node, "a condition that was not abstracted");
  const std::vector<Expr>& args = node->args;
  switch (node->op) {
    case Op::And: return condition(args[0]).intersect(condition(args[1]));
    case Op::Or: return condition(args[0]).unite(condition(args[1]));
    case Op::Not: return condition(args[0]).complement();
    case Op::Lt: return value(args[0]).lt_set(value(args[1]));
    case Op::Le: return value(args[0]).le_set(value(args[1]));
    case Op::Gt: return value(args[0]).gt_set(value(args[1]));
    case Op::Ge: return value(args[0]).ge_set(value(args[1]));
    case Op::Eq: return value(args[0]).eq_set(value(args[1]));
    case Op::Ne: return value(args[0]).ne_set(value(args[1]));
    default: HELVE_FAIL("a condition that was not abstracted");
  }
}

isl::pw_aff Translator::constant(int64_t value) const {
  return isl::manage(
      isl_pw_aff_from_aff(isl_aff_val_on_domain(isl_local_space_from_space(space_.copy()), number(value).release())));
}

}  // namespace helve
