// Bounds of sets by isl, read back as expressions.
// isl finds the bound as a piecewise affine function and its generator of code writes it down; whether the result is
// the bound is then asked of the set itself.
#include "helve/arith/set_bounds.h"

#include <algorithm>

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/visit.h"
#include "isl_ast.h"
#include "isl_points.h"
#include "isl_problem.h"

namespace helve {

namespace {

/// Is the set of one dimension bounded, for given parameters, so that isl finds its end? Its search need not end in an
/// unbounded set that is quantified.
bool has_end(const isl::set& line, bool greatest) {
  if (isl_set_is_bounded(line.get()) == isl_bool_true) return true;
  if (isl_set_involves_locals(line.get()) != isl_bool_false) return false;
  // Bounded on this side, if the part beyond 0 is bounded.
  isl_set* part = greatest ? isl_set_lower_bound_si(line.copy(), isl_dim_set, 0, 0)
                           : isl_set_upper_bound_si(line.copy(), isl_dim_set, 0, 0);
  return isl_set_is_bounded(isl::manage(part).get()) == isl_bool_true;
}

/// The end of the last dimension as an expression in the others, read as `numbers`, of at most `limit` operators.
std::optional<Expr> end_of(const isl::set& set, const std::vector<VarRef>& numbers, bool greatest, int limit) {
  const isl::set line = isl::manage(with_parameters(set, numbers.size() - 1));
  if (line.is_empty() || !has_end(line, greatest)) return {};
  isl_pw_aff* end = greatest ? isl_set_dim_max(line.copy(), 0) : isl_set_dim_min(line.copy(), 0);
  isl_ast_build* build = isl_ast_build_from_context(isl_set_params(line.copy()));
  const AstExpr ast(isl_ast_build_expr_from_pw_aff(build, isl_pw_aff_coalesce(end)));
  isl_ast_build_free(build);
  if (!ast) isl::exception::throw_last_error(set.ctx());
  const Expr out = read_ast(ast.get(), numbers);
  if (!out || operator_count(out) > limit) return {};
  return out;
}

/// Is `value`, in the entries before the last one, attained by that one wherever the set has a point, and never
/// exceeded?
bool is_end(const ExactEngine& engine, const isl::set& set, const std::vector<VarRef>& numbers, const Expr& value,
            bool greatest) {
  const Expr last(numbers.back());
  const Problem at(engine, numbers, plain_node(Op::Eq, {last, value}), {}, {}, {});
  const Problem beyond(engine, numbers, plain_node(greatest ? Op::Gt : Op::Lt, {last, value}), {}, {}, {});
  if (!at.inexact.empty() || !beyond.inexact.empty() || !at.domain || !beyond.domain) return false;
  bool holds = false;
  within_budget(engine.state(), [&] {
    isl_set* others = projected_from(set, numbers.size() - 1).release();
    const isl::set column = isl::manage(isl_set_add_dims(others, isl_dim_set, 1));
    holds = column.intersect(*at.domain).is_subset(set) && set.intersect(*beyond.domain).is_empty();
  });
  return holds;
}

std::optional<Expr> end_value(const IntegerSet& of, const VarRef& var, int limit, bool greatest) {
  const IntegerSet::Data& a = of.data();
  if (!a.set || !a.inexact.empty()) return {};
  const auto at = std::find(a.tuple.begin(), a.tuple.end(), var);
  HELVE_CHECK(at != a.tuple.end(), "a bound of a variable that is not in the tuple");
  std::vector<VarRef> names;
  std::optional<isl::set> set;  // of the parameters, the earlier entries and the variable
  const bool made = within_budget(a.engine, [&] {
    const isl::set prefix = projected_from(*a.set, static_cast<size_t>(at - a.tuple.begin()) + 1);
    names = params_of(prefix, a.params);
    set = with_params_first(prefix);
  });
  if (!made) return {};
  names.insert(names.end(), a.tuple.begin(), at + 1);
  Substitution named;
  std::vector<VarRef> numbers;  // a variable of a data type stands for its value
  for (const VarRef& name : names) {
    HELVE_CHECK(std::count(names.begin(), names.end(), name) == 1, "a bound in a variable that is named twice");
    numbers.push_back(make_var(name->name));
    named[numbers.back().get()] = name->dtype.is_index() ? Expr(name) : cast(Expr(name), kIndex);
  }
  std::optional<Expr> value;
  if (!within_budget(a.engine, [&] { value = end_of(*set, numbers, greatest, limit); }) || !value) return {};
  if (!is_end(ExactEngine(a.engine), *set, numbers, *value, greatest)) return {};
  return substitute(*value, named);
}

}  // namespace

std::optional<Expr> least_value(const IntegerSet& set, const VarRef& var, int limit) {
  return end_value(set, var, limit, false);
}

std::optional<Expr> greatest_value(const IntegerSet& set, const VarRef& var, int limit) {
  return end_value(set, var, limit, true);
}

}  // namespace helve
