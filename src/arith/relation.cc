// Sets and relations by isl.
// The only room that sees isl's headers; nothing of isl crosses the interface, exceptions included.
#include "helve/arith/relation.h"

#include <fmt/format.h>
#include <isl/cpp.h>
#include <isl/options.h>

#include <algorithm>
#include <atomic>
#include <random>
#include <unordered_map>

#include "affine.h"
#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/equal.h"
#include "helve/ir/expr/text.h"
#include "helve/ir/expr/visit.h"
#include "helve/support/cancel.h"
#include "helve/support/diagnostic.h"
#include "helve/support/text.h"
#include "isl_condition.h"

namespace helve {

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::Proved: return "proved";
    case Verdict::Refuted: return "refuted";
    case Verdict::Unknown: return "unknown";
  }
  __builtin_unreachable();
}

std::optional<int64_t> value_in(const Witness& witness, const Var* var) {
  for (const auto& [known, value] : witness) {
    if (known.get() == var) return value;
  }
  return std::nullopt;
}

struct ExactEngine::State {
  explicit State(int64_t limit) : context(isl_ctx_alloc()), limit(limit) {
    isl_options_set_on_error(context, ISL_ON_ERROR_CONTINUE);  // errors are exceptions here, not text
  }
  ~State() { isl_ctx_free(context); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  isl_ctx* context;
  int64_t limit;
};

ExactEngine::ExactEngine(int64_t operation_limit) : state_(std::make_shared<State>(operation_limit)) {}

namespace {

using Engine = std::shared_ptr<ExactEngine::State>;

/// Is the error, or the one that it follows from, an exceeded budget?
bool is_quota(const isl::exception& error, isl_ctx* context) {
  return dynamic_cast<const isl::exception_quota*>(&error) || isl_ctx_last_error(context) == isl_error_quota;
}

/// Runs `f` within the budget; false when it was exceeded.
template <class F>
bool within_budget(const Engine& engine, F&& f) {
  throw_if_cancelled();
  isl_ctx_reset_error(engine->context);
  isl_ctx_reset_operations(engine->context);
  isl_ctx_set_max_operations(engine->context, static_cast<unsigned long>(engine->limit));
  bool done = true;
  try {
    f();
  } catch (const isl::exception& error) {
    // What was computed from nothing complains of its own; the first error is what counts.
    done = !is_quota(error, engine->context);
    isl_ctx_set_max_operations(engine->context, 0);
    if (done) HELVE_FAIL(fmt::format("isl refuses a query: {}", error.what()));
  }
  isl_ctx_set_max_operations(engine->context, 0);
  isl_ctx_reset_error(engine->context);
  return done;
}

/// Abstracted expressions over a space whose dimensions and parameters are variables.
class Translator {
 public:
  Translator(const Engine& engine, const std::vector<VarRef>& dims, const std::vector<VarRef>& params)
      : space_(isl::manage(isl_space_set_alloc(engine->context, static_cast<unsigned>(params.size()),
                                               static_cast<unsigned>(dims.size())))) {
    // Parameters are aligned by name, so the name says which variable it is.
    for (size_t i = 0; i < params.size(); ++i) {
      const std::string name = fmt::format("p{}", static_cast<const void*>(params[i].get()));
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

  const isl::space& space() const { return space_; }

  isl::pw_aff value(const Expr& e) const {
    return known_values_.of(e, [&] { return value_once(e); });
  }

  /// least <= var <= greatest.
  isl::set between(const VarRef& var, int64_t least, int64_t greatest) const {
    const isl::pw_aff& value = values_.at(var.get());
    return value.ge_set(constant(least)).intersect(value.le_set(constant(greatest)));
  }

  isl::set condition(const Expr& e) const {
    return known_conditions_.of(e, [&] { return condition_once(e); });
  }

 private:
  isl::pw_aff value_once(const Expr& e) const {
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

  isl::set condition_once(const Expr& e) const {
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

  isl::val number(int64_t value) const { return isl::val(space_.ctx(), static_cast<long>(value)); }
  isl::pw_aff constant(int64_t value) const {
    return isl::manage(
        isl_pw_aff_from_aff(isl_aff_val_on_domain(isl_local_space_from_space(space_.copy()), number(value).release())));
  }
  void add(const VarRef& var, isl_aff* aff) { values_.emplace(var.get(), isl::manage(isl_pw_aff_from_aff(aff))); }

  isl::space space_;
  std::unordered_map<const Var*, isl::pw_aff> values_;
  mutable Memo<isl::pw_aff> known_values_;
  mutable Memo<isl::set> known_conditions_;
};

/// The variables of the expressions that `bound` does not hold, in order of first use.
std::vector<VarRef> free_variables(const std::vector<Expr>& exprs, const std::vector<VarRef>& bound) {
  std::unordered_set<const Var*> seen;
  for (const VarRef& var : bound) seen.insert(var.get());
  std::vector<VarRef> out;
  for (const Expr& e : exprs) {
    walk(e, [&](const Expr& node) {
      const Var* var = as<Var>(node);
      if (var && seen.insert(var).second) out.push_back(VarRef(var));
    });
  }
  return out;
}

/// What sets and relations share: expressions abstracted over a space of tuple, locals, unknowns and parameters.
struct Problem {
  Problem(const ExactEngine& engine, std::vector<VarRef> tuple_vars, const Expr& condition_of,
          const std::vector<Expr>& image_of, const std::vector<VarRef>& locals, const Translation& translation)
      : tuple(std::move(tuple_vars)) {
    AffineAbstraction abstract(translation);
    condition = abstract(condition_of);
    std::vector<VarRef> unknowns = abstract.unknowns();
    if (image_of.empty()) drop_free_conditions(unknowns);
    std::vector<Expr> all = {condition};
    for (const Expr& e : image_of) {
      image.push_back(abstract(e));
      all.push_back(image.back());
    }
    inexact = abstract.reason();
    dims = tuple;
    dims.insert(dims.end(), locals.begin(), locals.end());
    dims.insert(dims.end(), unknowns.begin(), unknowns.end());
    params = free_variables(all, dims);
    within_budget(engine.state(), [&] {
      translator.emplace(engine.state(), dims, params);
      domain = translator->condition(condition).intersect(ranges());
    });
  }

  /// A condition about which nothing is known, and which nothing else mentions, can always be met: without it and its
  /// unknown the set has the same points, and isl has less to carry.
  void drop_free_conditions(std::vector<VarRef>& unknowns) {
    if (unknowns.empty()) return;
    std::vector<Expr> kept;
    std::unordered_map<const Var*, int> uses;
    std::unordered_multimap<uint64_t, Expr> known;
    for (const Expr& each : operands_of_chain(condition, Op::And)) {
      const uint64_t hash = structural_hash(each);
      const auto [first, last] = known.equal_range(hash);
      const auto same = [&](const auto& other) { return same_expr(each, other.second); };
      if (std::any_of(first, last, same)) continue;
      known.emplace(hash, each);
      kept.push_back(each);
      walk(each, [&](const Expr& node) { uses[as<Var>(node)] += node->kind == ExprKind::Var; });
    }
    std::unordered_set<const Var*> unmet, dropped;
    for (const VarRef& unknown : unknowns) unmet.insert(unknown.get());
    std::erase_if(kept, [&](const Expr& each) {
      const Var* truth = truth_of_unknown(each);
      return truth && uses[truth] == 1 && unmet.contains(truth) && dropped.insert(truth).second;
    });
    std::erase_if(unknowns, [&](const VarRef& u) { return dropped.contains(u.get()); });
    if (dropped.empty()) return;
    condition = conjunction(std::move(kept));
  }

  /// The variable that stands for a condition (AffineAbstraction::unknown) or its negation; null for any other.
  static const Var* truth_of_unknown(const Expr& e) {
    if (const Apply* negation = as_op(e, Op::Not)) return truth_of_unknown(negation->args[0]);
    const Apply* node = as_op(e, Op::Le);
    const int64_t* one = node ? int_value(node->args[0]) : nullptr;
    return one && *one == 1 ? as<Var>(node->args[1]) : nullptr;
  }

  /// Variables of data types hold values of their types.
  isl::set ranges() const {
    isl::set out = translator->space().universe_set();
    for (const std::vector<VarRef>* vars : {&dims, &params}) {
      for (const VarRef& var : *vars) {
        if (!var->dtype.is_data_int() || var->dtype.bits > 32) continue;
        const bool is_signed = var->dtype.code == TypeCode::Int;
        const int64_t size = int64_t{1} << (is_signed ? var->dtype.bits - 1 : var->dtype.bits);
        out = out.intersect(translator->between(var, is_signed ? -size : 0, size - 1));
      }
    }
    return out;
  }

  std::vector<VarRef> tuple;
  std::vector<VarRef> dims;
  std::vector<VarRef> params;
  Expr condition;
  std::vector<Expr> image;
  std::string inexact;
  std::optional<Translator> translator;
  std::optional<isl::set> domain;  ///< nothing when the budget was exceeded
};

int64_t integer(isl_val* value) {
  const int64_t out = isl_val_get_num_si(value);
  isl_val_free(value);
  return out;
}

/// The lexicographically least point of a bounded set. Of another one a point that is as small, one dimension after the
/// other, as isl finds it: its search for the least point need not end there, whatever its budget, which counts no
/// pivots, and the least value that it gives for a dimension may be too small. The set is not empty.
isl::point a_point(const isl::set& set) {
  if (isl_set_is_bounded(set.get()) == isl_bool_true) return set.lexmin().sample_point();
  isl::set rest = set;
  const unsigned count = static_cast<unsigned>(isl_set_dim(set.get(), isl_dim_set));
  for (unsigned d = 0; d < count; ++d) {
    const isl::val least = rest.dim_min_val(static_cast<int>(d));
    if (!least.is_int()) return rest.sample_point();  // unbounded below
    const isl::set at_least = isl::manage(isl_set_fix_val(rest.copy(), isl_dim_set, d, least.copy()));
    if (at_least.is_empty()) return rest.sample_point();
    rest = at_least;
  }
  return rest.sample_point();
}

/// The coordinates of a point whose parameters stand before its dimensions.
Witness witness_of(const isl::point& point, const std::vector<VarRef>& params, const std::vector<VarRef>& dims,
                   size_t from = 0) {
  Witness out;
  for (size_t i = 0; i < params.size(); ++i) {
    const unsigned at = static_cast<unsigned>(i);
    out.emplace_back(params[i], integer(isl_point_get_coordinate_val(point.get(), isl_dim_set, static_cast<int>(at))));
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    const int at = static_cast<int>(params.size() + from + i);
    out.emplace_back(dims[i], integer(isl_point_get_coordinate_val(point.get(), isl_dim_set, at)));
  }
  return out;
}

/// The set with its parameters as first dimensions.
isl::set with_params_first(const isl::set& set) {
  isl_set* moved = set.copy();
  const unsigned count = static_cast<unsigned>(isl_set_dim(moved, isl_dim_param));
  return isl::manage(isl_set_move_dims(moved, isl_dim_set, 0, isl_dim_param, 0, count));
}

/// The parameters of a set as variables, by the names that the translator gave them.
std::vector<VarRef> params_of(const isl::set& set, const std::vector<VarRef>& a, const std::vector<VarRef>& b = {}) {
  std::vector<VarRef> out;
  const unsigned count = static_cast<unsigned>(isl_set_dim(set.get(), isl_dim_param));
  for (unsigned i = 0; i < count; ++i) {
    const std::string name = isl_set_get_dim_name(set.get(), isl_dim_param, i);
    for (const std::vector<VarRef>* vars : {&a, &b}) {
      for (const VarRef& var : *vars) {
        if (out.size() == i && fmt::format("p{}", static_cast<const void*>(var.get())) == name) out.push_back(var);
      }
    }
    HELVE_CHECK(out.size() == i + 1, "a parameter of another query");
  }
  return out;
}

Answer unknown(std::string_view reason) { return {Verdict::Unknown, {}, {}, std::string(reason)}; }

}  // namespace

struct IntegerSet::Data {
  Engine engine;
  std::vector<VarRef> tuple;
  std::vector<VarRef> params;
  std::string inexact;
  std::optional<isl::set> set;  ///< over the tuple, then what is existentially quantified; nothing over the budget
};

namespace {

/// The set with dimension `from` at the earlier place `to`.
isl::set moved_dimension(const isl::set& set, size_t from, size_t to) {
  if (from == to) return set;
  // isl moves between kinds of dimensions only, so the way is by a parameter.
  isl_set* out = set.copy();
  const unsigned param = static_cast<unsigned>(isl_set_dim(out, isl_dim_param));
  out = isl_set_move_dims(out, isl_dim_param, param, isl_dim_set, static_cast<unsigned>(from), 1);
  out = isl_set_move_dims(out, isl_dim_set, static_cast<unsigned>(to), isl_dim_param, param, 1);
  return isl::manage(out);
}

/// The set without its dimensions from `first` on.
isl::set projected_from(const isl::set& set, size_t first) {
  isl_set* out = set.copy();
  const unsigned count = static_cast<unsigned>(isl_set_dim(out, isl_dim_set));
  return isl::manage(
      isl_set_project_out(out, isl_dim_set, static_cast<unsigned>(first), count - static_cast<unsigned>(first)));
}

}  // namespace

IntegerSet::IntegerSet(const ExactEngine& engine, std::vector<VarRef> tuple, const Expr& condition,
                       std::vector<VarRef> locals, const Translation& translation) {
  Problem problem(engine, std::move(tuple), condition, {}, locals, translation);
  data_ = std::make_shared<Data>(Data{engine.state(), problem.tuple, problem.params, problem.inexact, problem.domain});
}

const std::vector<VarRef>& IntegerSet::tuple() const { return data_->tuple; }
const std::string& IntegerSet::inexact() const { return data_->inexact; }

Answer IntegerSet::is_empty() const {
  if (!data_->set) return unknown(kOverBudget);
  Answer answer;
  const bool done = within_budget(data_->engine, [&] {
    if (data_->set->is_empty()) {
      answer.verdict = Verdict::Proved;
    } else if (!data_->inexact.empty()) {
      answer.reason = data_->inexact;
    } else {
      answer.witness = witness_of(a_point(with_params_first(*data_->set)), data_->params, data_->tuple);
      answer.verdict = Verdict::Refuted;
    }
  });
  return done ? answer : unknown(kOverBudget);
}

Answer IntegerSet::is_subset_of(const IntegerSet& other) const {
  const Data &a = *data_, &b = *other.data_;
  if (!a.set || !b.set) return unknown(kOverBudget);
  HELVE_CHECK(a.engine == b.engine && a.tuple.size() == b.tuple.size(), "sets that cannot be compared");
  Answer answer;
  const bool done = within_budget(a.engine, [&] {
    const isl::set rest = projected_from(*a.set, a.tuple.size()).subtract(projected_from(*b.set, b.tuple.size()));
    if (rest.is_empty()) {
      answer.reason = b.inexact;
      if (b.inexact.empty()) answer.verdict = Verdict::Proved;
    } else if (!a.inexact.empty()) {
      answer.reason = a.inexact;
    } else {
      answer.witness = witness_of(a_point(with_params_first(rest)), params_of(rest, a.params, b.params), a.tuple);
      answer.verdict = Verdict::Refuted;
    }
  });
  return done ? answer : unknown(kOverBudget);
}

namespace {

std::atomic<bool> conditions_sampled = false;

/// The set in fewer pieces. isl 0.26 also unites some that leave a gap, {0 <= n <= 2} and {n % 3 != 0} to {0 <= n}:
/// what it makes is compared with what it made it of.
isl::set in_fewer_pieces(const isl::set& set) {
  const isl::set out = set.coalesce();
  return out.is_equal(set) ? out : set;
}

/// Does the condition hold at the points of `set` and at no other of `within`?
bool describes(const ExactEngine& engine, const Expr& condition, const std::vector<VarRef>& vars, const isl::set& set,
               const isl::set& within) {
  const Problem problem(engine, vars, condition, {}, {}, {});
  bool same = false;
  within_budget(engine.state(), [&] {
    same = problem.inexact.empty() && problem.params.empty() && problem.domain &&
           problem.domain->intersect(within).is_equal(set);
  });
  return same;
}

/// Looks at points of a small box one by one: those of `within` meet the condition or lie in `broken`, not both. Shares
/// nothing with what made the condition but the sets themselves.
void sample(const Expr& condition, const std::vector<VarRef>& vars, const isl::set& broken, const isl::set& within) {
  constexpr int kPoints = 64;
  constexpr int64_t kFirst = -3, kSide = 13;
  const auto holds_at = [&](isl::set set, const std::vector<int64_t>& point) {
    for (size_t d = 0; d < point.size(); ++d) {
      const auto at = static_cast<int>(point[d]);
      set = isl::manage(isl_set_fix_si(set.release(), isl_dim_set, static_cast<unsigned>(d), at));
    }
    return !set.is_empty();
  };
  std::minstd_rand random;
  for (int k = 0; k < kPoints; ++k) {
    std::vector<int64_t> point;
    Substitution values;
    for (const VarRef& var : vars) {
      point.push_back(kFirst + (vars.size() == 1 ? k : static_cast<int64_t>(random()) % kSide));
      values[var.get()] = int_imm(point.back());
    }
    if (!holds_at(within, point)) continue;
    const std::optional<int64_t> met = constant_value(substitute(condition, values));
    HELVE_CHECK(met && (*met == 0) == holds_at(broken, point),
                fmt::format("the condition '{}' is wrong at {}", to_text(condition), shape_text(point)));
  }
}

}  // namespace

void sample_conditions(bool on) { conditions_sampled = on; }

std::optional<Expr> IntegerSet::condition_outside(const IntegerSet& within, int limit) const {
  const Data &a = *data_, &b = *within.data_;
  if (!a.set || !b.set || !a.inexact.empty() || !b.inexact.empty() || !a.params.empty() || !b.params.empty()) return {};
  HELVE_CHECK(a.engine == b.engine && a.tuple.size() == b.tuple.size(), "sets that cannot be compared");
  std::vector<VarRef> numbers;  // a variable of a data type stands for its value
  for (const VarRef& var : a.tuple) numbers.push_back(make_var(var->name));
  std::optional<isl::set> all, broken, rest;
  const bool done = within_budget(a.engine, [&] {
    all = projected_from(*b.set, b.tuple.size());
    broken = in_fewer_pieces(projected_from(*a.set, a.tuple.size()).intersect(*all));
    rest = in_fewer_pieces(all->subtract(*broken));
  });
  if (!done) return {};
  std::optional<Expr> best;
  const auto offer = [&](const isl::set& set, bool negate) {
    std::optional<Expr> form;
    if (!within_budget(a.engine, [&] { form = condition_of(set, *all, numbers, limit); }) || !form) return;
    if (negate) form = negated(*form);
    const bool shorter = !best || operator_count(*form) < operator_count(*best);
    if (shorter && describes(ExactEngine(a.engine), *form, numbers, *rest, *all)) best = form;
  };
  offer(*rest, false);
  if (!best || operator_count(*best) > 2) offer(*broken, true);
  if (!best) return {};
  if (conditions_sampled) sample(*best, numbers, *a.set, *b.set);
  Substitution named;
  for (size_t d = 0; d < numbers.size(); ++d) named[numbers[d].get()] = Expr(a.tuple[d]);
  return substitute(*best, named);
}

IntegerSet IntegerSet::projected(const std::vector<VarRef>& kept) const {
  std::shared_ptr<Data> out = std::make_shared<Data>(*data_);
  out->tuple = kept;
  if (!data_->set) return IntegerSet(out);
  const bool done = within_budget(data_->engine, [&] {
    isl::set set = projected_from(*data_->set, data_->tuple.size());
    // The kept dimensions move to the front, in their order, then the rest is dropped.
    std::vector<VarRef> order = data_->tuple;
    for (size_t i = 0; i < kept.size(); ++i) {
      const auto at = std::find(order.begin(), order.end(), kept[i]);
      HELVE_CHECK(at != order.end(), "a projection to a variable that is not in the tuple");
      const size_t from = static_cast<size_t>(at - order.begin());
      set = moved_dimension(set, from, i);
      order.erase(at);
      order.insert(order.begin() + static_cast<int64_t>(i), kept[i]);
    }
    out->set = projected_from(set, kept.size());
  });
  if (!done) out->set.reset();
  return IntegerSet(out);
}

struct IntegerRelation::Data {
  Engine engine;
  std::vector<VarRef> tuple;
  std::vector<VarRef> params;
  std::string inexact;
  std::optional<isl::map> map;  ///< nothing over the budget
};

IntegerRelation::IntegerRelation(const ExactEngine& engine, std::vector<VarRef> tuple, const std::vector<Expr>& image,
                                 const Expr& condition, std::vector<VarRef> locals, const Translation& translation) {
  Problem problem(engine, std::move(tuple), condition, image, locals, translation);
  std::optional<isl::map> map;
  if (problem.domain) {
    within_budget(engine.state(), [&] {
      isl_pw_aff_list* list = isl_pw_aff_list_alloc(engine.state()->context, static_cast<int>(image.size()));
      for (const Expr& e : problem.image) {
        list = isl_pw_aff_list_add(list, problem.translator->value(e).release());
      }
      isl_space* space = isl_space_from_domain(problem.translator->space().copy());
      space = isl_space_add_dims(space, isl_dim_out, static_cast<unsigned>(image.size()));
      isl_multi_pw_aff* values = isl_multi_pw_aff_from_pw_aff_list(space, list);
      isl::map whole = isl::manage(isl_map_from_multi_pw_aff(values)).intersect_domain(*problem.domain);
      const unsigned first = static_cast<unsigned>(problem.tuple.size());
      map = isl::manage(
          isl_map_project_out(whole.release(), isl_dim_in, first, static_cast<unsigned>(problem.dims.size()) - first));
    });
  }
  data_ = std::make_shared<Data>(Data{engine.state(), problem.tuple, problem.params, problem.inexact, map});
}

std::optional<std::string> IntegerRelation::text(const std::vector<std::string>& tuple_names,
                                                 const std::vector<std::string>& image_names) const {
  if (!data_->map) return std::nullopt;
  std::string text;
  const bool done = within_budget(data_->engine, [&] {
    isl_map* map = isl_map_copy(data_->map->get());
    unsigned at = 0;
    for (const std::string& name : tuple_names) map = isl_map_set_dim_name(map, isl_dim_in, at++, name.c_str());
    at = 0;
    for (const std::string& name : image_names) map = isl_map_set_dim_name(map, isl_dim_out, at++, name.c_str());
    char* made = isl_map_to_str(map);
    isl_map_free(map);
    text = made;
    free(made);
  });
  if (!done) return std::nullopt;
  return text;
}

Answer IntegerRelation::is_injective() const {
  const Data& d = *data_;
  if (!d.map) return unknown(kOverBudget);
  Answer answer;
  const bool done = within_budget(d.engine, [&] {
    const isl::map pairs = d.map->apply_range(d.map->reverse());
    const isl::map different = pairs.subtract(pairs.domain().identity());
    if (different.is_empty()) {
      answer.verdict = Verdict::Proved;
    } else if (!d.inexact.empty()) {
      answer.reason = d.inexact;
    } else {
      const isl::set wrapped = different.wrap().flatten();
      const std::vector<VarRef> params = params_of(wrapped, d.params);
      const isl::point point = a_point(with_params_first(wrapped));
      answer.witness = witness_of(point, params, d.tuple);
      answer.other = witness_of(point, params, d.tuple, d.tuple.size());
      answer.verdict = Verdict::Refuted;
    }
  });
  return done ? answer : unknown(kOverBudget);
}

Answer IntegerRelation::is_equal(const IntegerRelation& other) const {
  const Data &a = *data_, &b = *other.data_;
  if (!a.map || !b.map) return unknown(kOverBudget);
  HELVE_CHECK(a.engine == b.engine && a.tuple.size() == b.tuple.size(), "relations that cannot be compared");
  if (!a.inexact.empty() || !b.inexact.empty()) return unknown(a.inexact.empty() ? b.inexact : a.inexact);
  Answer answer;
  const bool done = within_budget(a.engine, [&] {
    const isl::map rest = a.map->subtract(*b.map).unite(b.map->subtract(*a.map));
    if (rest.is_empty()) {
      answer.verdict = Verdict::Proved;
    } else {
      const isl::set where = rest.domain();
      answer.witness = witness_of(a_point(with_params_first(where)), params_of(where, a.params, b.params), a.tuple);
      answer.verdict = Verdict::Refuted;
    }
  });
  return done ? answer : unknown(kOverBudget);
}

}  // namespace helve
