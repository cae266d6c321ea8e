// From abstracted expressions to isl, operator by operator.
// Each part of an expression is translated once, however often it occurs.
#include "isl_translator.h"

#include <fmt/format.h>
#include <isl/mat.h>

#include <algorithm>
#include <utility>

#include "helve/ir/expr/build.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

using Constraint = Translator::Constraint;

/// A row of coefficients whose last column is the constant, minima and maxima with their factors, and at most one
/// quotient, whose factor is 1 or -1.
struct Row {
  std::vector<int64_t> row;
  const Apply* quotient = nullptr;
  int64_t sign = 0;
  std::vector<std::pair<const Apply*, int64_t>> extremes = {};
};

/// Adds `factor` times an expression. False if it is not linear, or where a coefficient would leave 64 bits.
bool add_linear(const Expr& e, int64_t factor, const std::unordered_map<const Var*, unsigned>& columns, Row& to) {
  std::vector<int64_t>& row = to.row;
  const auto add = [&](unsigned column, int64_t value) {
    int64_t scaled = 0;
    return !__builtin_mul_overflow(value, factor, &scaled) &&
           !__builtin_add_overflow(row[column], scaled, &row[column]);
  };
  if (const int64_t* constant = int_value(e)) return add(static_cast<unsigned>(row.size() - 1), *constant);
  if (const Var* var = as<Var>(e)) return add(columns.at(var), 1);
  const Apply* node = as<Apply>(e);
  if (!node || factor == INT64_MIN) return false;
  const auto part = [&](size_t n, int64_t f) { return add_linear(node->args[n], f, columns, to); };
  switch (node->op) {
    case Op::Add: return part(0, factor) && part(1, factor);
    case Op::Sub: return part(0, factor) && part(1, -factor);
    case Op::Neg: return part(0, -factor);
    case Op::Mul: {
      const size_t constant = int_value(node->args[0]) ? 0 : 1;
      int64_t scaled = 0;
      return !__builtin_mul_overflow(*int_value(node->args[constant]), factor, &scaled) && part(1 - constant, scaled);
    }
    case Op::FloorDiv:
      if (to.quotient || (factor != 1 && factor != -1)) return false;
      to.quotient = node;
      to.sign = factor;
      return true;
    case Op::Min:
    case Op::Max: to.extremes.emplace_back(node, factor); return true;
    default: return false;
  }
}

/// `row + e // c >= 0` is `c row + e >= 0`, and `row - e // c >= 0` is `c row + c - 1 - e >= 0`: exact without a
/// quotient, which isl would have to carry. False if it is not linear, or would leave 64 bits.
bool clear_quotient(Row& of, const std::unordered_map<const Var*, unsigned>& columns) {
  const Apply* quotient = std::exchange(of.quotient, nullptr);
  const int64_t divisor = *int_value(quotient->args[1]);
  for (int64_t& each : of.row) {
    if (__builtin_mul_overflow(each, divisor, &each)) return false;
  }
  if (of.sign < 0 && __builtin_add_overflow(of.row.back(), divisor - 1, &of.row.back())) return false;
  return add_linear(quotient->args[0], of.sign, columns, of) && !of.quotient;
}

/// The negative of a row. False where a coefficient would leave 64 bits.
bool negate(Row& of) {
  of.sign = -of.sign;
  for (auto& [extreme, factor] : of.extremes) factor = -factor;
  return std::none_of(of.row.begin(), of.row.end(),
                      [](int64_t& each) { return __builtin_sub_overflow(0, each, &each); });
}

/// One of the conjunctions holds.
using Cases = std::vector<std::vector<Constraint>>;

constexpr size_t kCaseLimit = 8;

/// All of one of the first and all of one of the second; nothing if these are too many.
std::optional<Cases> both(const Cases& first, const Cases& second) {
  if (first.size() * second.size() > kCaseLimit) return std::nullopt;
  Cases out;
  for (const std::vector<Constraint>& one : first) {
    for (const std::vector<Constraint>& other : second) {
      out.push_back(one);
      out.back().insert(out.back().end(), other.begin(), other.end());
    }
  }
  return out;
}

/// `row = 0`, or `row >= 0`; `v <= min(x, y)` is `v <= x` and `v <= y`, `v <= max(x, y)` is `v <= x` or `v <= y`. An
/// equality with one of these or with a quotient is two inequalities. Nothing if it is not linear, or has too many
/// cases.
std::optional<Cases> cases_of(Row of, bool equality, const std::unordered_map<const Var*, unsigned>& columns) {
  if (!of.extremes.empty() && equality) {
    Row opposite = of;
    if (!negate(opposite)) return std::nullopt;
    const std::optional<Cases> at_least = cases_of(std::move(of), false, columns);
    if (!at_least) return std::nullopt;
    const std::optional<Cases> at_most = cases_of(std::move(opposite), false, columns);
    return at_most ? both(*at_least, *at_most) : std::nullopt;
  }
  if (!of.extremes.empty()) {
    const auto [extreme, factor] = of.extremes.back();
    of.extremes.pop_back();
    Cases out;
    for (const Expr& arg : extreme->args) {
      Row each = of;
      if (!add_linear(arg, factor, columns, each)) return std::nullopt;
      std::optional<Cases> cases = cases_of(std::move(each), false, columns);
      if (cases && !out.empty() && (extreme->op == Op::Min) == (factor > 0)) {
        cases = both(out, *cases);
        out.clear();
      }
      if (!cases || out.size() + cases->size() > kCaseLimit) return std::nullopt;
      out.insert(out.end(), cases->begin(), cases->end());
    }
    return out;
  }
  if (!of.quotient) return Cases{{{std::move(of.row), equality}}};
  Row below = of;
  if (!clear_quotient(of, columns)) return std::nullopt;
  if (equality && (!negate(below) || !clear_quotient(below, columns))) return std::nullopt;
  const std::optional<Cases> at_least = cases_of(std::move(of), false, columns);
  if (!at_least || !equality) return at_least;
  const std::optional<Cases> at_most = cases_of(std::move(below), false, columns);
  return at_most ? both(*at_least, *at_most) : std::nullopt;
}

bool is_inequality(Op op) { return op == Op::Lt || op == Op::Le || op == Op::Gt || op == Op::Ge; }

/// What holds where the inequality does not.
Op opposite(Op op) {
  switch (op) {
    case Op::Lt: return Op::Ge;
    case Op::Le: return Op::Gt;
    case Op::Gt: return Op::Le;
    default: return Op::Lt;
  }
}

/// A comparison as cases; nothing if it is none of linear expressions.
std::optional<Cases> cases_of(const Expr& e, const std::unordered_map<const Var*, unsigned>& columns, unsigned width) {
  const Apply* node = as<Apply>(e);
  if (!node) return std::nullopt;
  Op op = node->op;
  if (op == Op::Not) {
    node = as<Apply>(node->args[0]);
    if (!node || !is_inequality(node->op)) return std::nullopt;
    op = opposite(node->op);
  }
  const bool strict = op == Op::Lt || op == Op::Gt;
  const bool right_is_greater = op == Op::Lt || op == Op::Le;
  if (!is_inequality(op) && op != Op::Eq) return std::nullopt;
  const int64_t sign = right_is_greater ? -1 : 1;
  Row out{std::vector<int64_t>(width)};
  if (!add_linear(node->args[0], sign, columns, out) || !add_linear(node->args[1], -sign, columns, out)) {
    return std::nullopt;
  }
  if (strict && __builtin_sub_overflow(out.row.back(), 1, &out.row.back())) return std::nullopt;
  return cases_of(std::move(out), op == Op::Eq, columns);
}

/// `row >= 0` and `-row + c >= 0` with a negative c.
bool exclude_each_other(const Constraint& a, const Constraint& b) {
  if (a.equality || b.equality) return false;
  int64_t sum = 0;
  for (size_t c = 0; c + 1 < a.row.size(); ++c) {
    if (__builtin_add_overflow(a.row[c], b.row[c], &sum) || sum != 0) return false;
  }
  return !__builtin_add_overflow(a.row.back(), b.row.back(), &sum) && sum < 0;
}

/// Leaves the cases that none of the constraints excludes at sight.
void drop_excluded(Cases& cases, const std::vector<Constraint>& known) {
  std::erase_if(cases, [&](const std::vector<Constraint>& all) {
    return std::any_of(all.begin(), all.end(), [&](const Constraint& one) {
      return std::any_of(known.begin(), known.end(),
                         [&](const Constraint& other) { return exclude_each_other(one, other); });
    });
  });
}

isl_mat* matrix_of(const Engine& engine, const std::vector<Constraint>& all, bool equalities, unsigned width) {
  std::vector<const Constraint*> rows;
  for (const Constraint& each : all) {
    if (each.equality == equalities) rows.push_back(&each);
  }
  isl_mat* out = isl_mat_alloc(engine->context, static_cast<unsigned>(rows.size()), width);
  for (size_t r = 0; r < rows.size(); ++r) {
    for (unsigned c = 0; c < width; ++c) {
      isl_val* value = isl_val_int_from_si(engine->context, static_cast<long>(rows[r]->row[c]));
      out = isl_mat_set_element_val(out, static_cast<int>(r), static_cast<int>(c), value);
    }
  }
  return out;
}

}  // namespace

std::string parameter_name(const VarRef& var) { return fmt::format("p{}", static_cast<const void*>(var.get())); }

Translator::Translator(const Engine& engine, const std::vector<VarRef>& dims, const std::vector<VarRef>& params)
    : space_(isl::manage(isl_space_set_alloc(engine->context, static_cast<unsigned>(params.size()),
                                             static_cast<unsigned>(dims.size())))),
      dims_(static_cast<unsigned>(dims.size())),
      width_(static_cast<unsigned>(dims.size() + params.size()) + 1),
      engine_(engine) {
  for (const std::vector<VarRef>* vars : {&dims, &params}) {
    for (const VarRef& var : *vars) columns_.emplace(var.get(), static_cast<unsigned>(columns_.size()));
  }
  HELVE_CHECK(columns_.size() + 1 == width_, "a variable of two dimensions");
  // Parameters are aligned by name, so the name says which variable it is.
  for (size_t i = 0; i < params.size(); ++i) {
    const std::string name = parameter_name(params[i]);
    isl_id* id = isl_id_alloc(engine->context, name.c_str(), nullptr);
    space_ = isl::manage(isl_space_set_dim_id(space_.release(), isl_dim_param, static_cast<unsigned>(i), id));
  }
}

isl::pw_aff Translator::variable(const Var* var) const {
  const unsigned column = columns_.at(var);
  const bool is_dim = column < dims_;
  return isl::manage(isl_pw_aff_from_aff(isl_aff_var_on_domain(isl_local_space_from_space(space_.copy()),
                                                               is_dim ? isl_dim_set : isl_dim_param,
                                                               is_dim ? column : column - dims_)));
}

isl::set Translator::between(const VarRef& var, int64_t least, int64_t greatest) const {
  const isl::pw_aff value = variable(var.get());
  return value.ge_set(constant(least)).intersect(value.le_set(constant(greatest)));
}

isl::pw_aff Translator::value_once(const Expr& e) const {
  if (const int64_t* constant = int_value(e)) return this->constant(*constant);
  if (const Var* var = as<Var>(e)) return variable(var);
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
    case Op::And: return conjunction(e);
    case Op::Or: return condition(args[0]).unite(condition(args[1]));
    case Op::Not: return condition(args[0]).complement();
    default: break;
  }
  if (const std::optional<Cases> cases = cases_of(e, columns_, width_)) return any_of(*cases);
  switch (node->op) {
    case Op::Lt: return value(args[0]).lt_set(value(args[1]));
    case Op::Le: return value(args[0]).le_set(value(args[1]));
    case Op::Gt: return value(args[0]).gt_set(value(args[1]));
    case Op::Ge: return value(args[0]).ge_set(value(args[1]));
    case Op::Eq: return value(args[0]).eq_set(value(args[1]));
    case Op::Ne: return value(args[0]).ne_set(value(args[1]));
    default: HELVE_FAIL("a condition that was not abstracted");
  }
}

/// All linear comparisons become one basic set: translated one by one, isl would simplify what is left after each.
/// Other conditions with one basic set, as equal quotients, are intersected with it before those with several: an
/// intersection of sets asks of each pair of basic sets whether it is empty, which costs more than all the rest.
isl::set Translator::conjunction(const Expr& e) const {
  std::vector<Constraint> linear;
  std::vector<Cases> unions;
  std::vector<Expr> others;
  for (const Expr& each : operands_of_chain(e, Op::And)) {
    std::optional<Cases> cases = cases_of(each, columns_, width_);
    if (!cases) {
      others.push_back(each);
    } else if (cases->size() > 1) {
      unions.push_back(std::move(*cases));
    } else {
      linear.insert(linear.end(), (*cases)[0].begin(), (*cases)[0].end());
    }
  }
  for (Cases& cases : unions) {
    drop_excluded(cases, linear);
    if (cases.size() == 1) linear.insert(linear.end(), cases[0].begin(), cases[0].end());
  }
  isl::basic_set all = all_of(linear);
  std::vector<isl::set> several;
  for (const Cases& cases : unions) {
    if (cases.size() != 1) several.push_back(any_of(cases));
  }
  for (const Expr& each : others) {
    isl::set set = condition(each);
    if (isl_set_n_basic_set(set.get()) != 1) {
      several.push_back(std::move(set));
      continue;
    }
    isl_basic_set_list* const parts = isl_set_get_basic_set_list(set.get());
    isl_basic_set* const only = isl_basic_set_list_get_basic_set(parts, 0);
    isl_basic_set_list_free(parts);
    all = all.intersect(isl::manage(only));
  }
  isl::set out = all;
  for (const isl::set& each : several) out = out.intersect(each);
  return out;
}

isl::basic_set Translator::all_of(const std::vector<Constraint>& all) const {
  isl_mat* const equal = matrix_of(engine_, all, true, width_);
  isl_mat* const at_least = matrix_of(engine_, all, false, width_);
  return isl::manage(isl_basic_set_from_constraint_matrices(space_.copy(), equal, at_least, isl_dim_set, isl_dim_param,
                                                            isl_dim_div, isl_dim_cst));
}

isl::set Translator::any_of(const std::vector<std::vector<Constraint>>& cases) const {
  isl::set out = isl::set::empty(space_);
  for (const std::vector<Constraint>& all : cases) out = out.unite(isl::set(all_of(all)));
  return out;
}

isl::pw_aff Translator::constant(int64_t value) const {
  return isl::manage(
      isl_pw_aff_from_aff(isl_aff_val_on_domain(isl_local_space_from_space(space_.copy()), number(value).release())));
}

}  // namespace helve
