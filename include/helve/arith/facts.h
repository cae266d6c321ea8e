// What is known of variables where an expression stands: ranges, residues, loop bounds, guards.
// A simplification may use nothing else, so a caller states exactly what its result depends on.
#pragma once

#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "helve/arith/interval.h"
#include "helve/arith/residue.h"
#include "helve/arith/sum.h"

namespace helve {

/// A conjunction of facts; each call adds one. Facts that contradict each other hold nowhere, so anything may then be
/// concluded.
class Facts {
 public:
  /// `var` lies in `range`.
  void bind(const Var* var, Interval range);
  void bind(const VarRef& var, Interval range) { bind(var.get(), range); }

  /// `var` lies in `residue`.
  void bind_residue(const Var* var, const Residue& residue);
  void bind_residue(const VarRef& var, const Residue& residue) { bind_residue(var.get(), residue); }
  /// `var` has the value of `e`: its interval and its residue.
  void bind_value(const Var* var, const Expr& e);

  /// `var` runs over begin <= var < begin + extent (index expressions); inside the loop extent is at least 1.
  void bind_loop(const VarRef& var, const Expr& begin, const Expr& extent);

  /// `condition` (bool) holds. Comparisons of index expressions become inequalities; anything else is known by its
  /// structure. Returns whether it says more than was known.
  bool assume(const Expr& condition);
  /// As `assume`, for a condition that is in normal form under these facts; `value` false says that it does not hold.
  void assume_normal(const Expr& condition, bool value = true);

  Interval range_of(const Var* var) const;
  Residue residue_of(const Var* var) const;
  /// Sums that are >= 0.
  const std::vector<Sum>& inequalities() const { return inequalities_; }
  /// The truth of a simplified condition that was assumed (or whose negation was).
  std::optional<bool> known(const Expr& condition) const;
  /// True only when no assignment satisfies the facts (a variable's range or residue has become empty); false says
  /// nothing.
  bool contradictory() const { return contradictory_; }

 private:
  void learn(const Expr& condition, bool value);
  void learn_nonnegative(std::optional<Sum> sum);
  /// `sum` is 0 modulo `modulus` (0: is 0).
  void learn_congruence(const Sum& sum, int64_t modulus);
  void narrow_ranges();
  /// Did a range change?
  bool narrow_by(const Sum& sum);
  bool narrow(const Var* var, const Interval& range);

  std::unordered_map<const Var*, Interval> ranges_;
  std::unordered_map<const Var*, Residue> residues_;
  std::vector<Sum> inequalities_;
  std::vector<std::pair<Expr, bool>> truths_;
  bool contradictory_ = false;
};

/// An interval that holds every value of `e` under the facts: exact ends for sums of independent variables, else an
/// outer bound. Bool is 0 and 1; a float has no interval (everything).
Interval interval_of(const Expr& e, const Facts& facts);
Interval interval_of(const Sum& sum, const Facts& facts);

/// A residue that holds every value of an integer expression under the facts. Data integers: of constants and variables
/// only, since their arithmetic wraps.
Residue residue_of(const Expr& e, const Facts& facts);
Residue residue_of(const Sum& sum, const Facts& facts);

}  // namespace helve
