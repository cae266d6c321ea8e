// Conditions outside of sets.
// Of the forms that isl finds, the shortest that describes exactly the set.
#include <algorithm>
#include <atomic>
#include <random>

#include "helve/arith/simplify.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/build.h"
#include "helve/ir/expr/text.h"
#include "helve/support/text.h"
#include "isl_ast.h"
#include "isl_condition.h"
#include "isl_points.h"
#include "isl_problem.h"

namespace helve {

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
  check_comparable(a, b);
  std::vector<VarRef> numbers;  // a variable of a data type stands for its value
  for (const VarRef& var : a.tuple) numbers.push_back(make_var(var->name));
  std::optional<isl::set> all, broken, rest;
  const bool done = within_budget(a.engine, [&] {
    all = b.points();
    broken = in_fewer_pieces(a.points().intersect(*all));
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

}  // namespace helve
