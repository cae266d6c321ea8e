// From abstracted expressions to isl.
// It meets affine operators only: the abstraction has replaced the others by unknowns.
#pragma once

#include <isl/cpp.h>

#include <unordered_map>
#include <vector>

#include "helve/ir/expr/visit.h"
#include "isl_engine.h"

namespace helve {

/// Abstracted expressions over a space whose dimensions and parameters are variables.
class Translator {
 public:
  Translator(const Engine& engine, const std::vector<VarRef>& dims, const std::vector<VarRef>& params);

  const isl::space& space() const { return space_; }

  isl::pw_aff value(const Expr& e) const {
    return known_values_.of(e, [&] { return value_once(e); });
  }
  isl::set condition(const Expr& e) const {
    return known_conditions_.of(e, [&] { return condition_once(e); });
  }
  /// `row >= 0`, or `row = 0`: coefficients of dimensions and parameters, then the constant.
  struct Constraint {
    std::vector<int64_t> row;
    bool equality;
  };
  /// least <= var <= greatest.
  isl::set between(const VarRef& var, int64_t least, int64_t greatest) const;

 private:
  isl::pw_aff value_once(const Expr& e) const;
  isl::set condition_once(const Expr& e) const;
  isl::set conjunction(const Expr& e) const;
  isl::basic_set all_of(const std::vector<Constraint>& all) const;
  isl::set any_of(const std::vector<std::vector<Constraint>>& cases) const;  ///< all of one
  isl::val number(int64_t value) const { return isl::val(space_.ctx(), static_cast<long>(value)); }
  isl::pw_aff constant(int64_t value) const;
  isl::pw_aff variable(const Var* var) const;

  isl::space space_;
  std::unordered_map<const Var*, unsigned> columns_;  ///< of a row of coefficients: dimensions, parameters, constant
  unsigned dims_, width_;
  Engine engine_;
  mutable Memo<isl::pw_aff> known_values_;
  mutable Memo<isl::set> known_conditions_;
};

/// The name of a variable's parameter in isl, where parameters are aligned by name.
std::string parameter_name(const VarRef& var);

}  // namespace helve
