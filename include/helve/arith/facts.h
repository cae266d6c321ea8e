// Facts about variables at a place of the program: ranges, residues, loop bounds, guards.
// A simplification may use nothing else, so a caller states exactly what its result depends on.
#pragma once

#include <memory>
#include <optional>
#include <unordered_map>

#include "helve/arith/interval.h"
#include "helve/arith/residue.h"
#include "helve/arith/sum.h"
#include "helve/support/shared_list.h"

namespace helve {

/// A Bloom filter: a bit that is not set proves that something does not occur.
using Bits = uint64_t;
Bits bits_of(const Term& term);

/// sum >= 0, and data by which irrelevant inequalities are skipped.
struct Inequality {
  explicit Inequality(Sum sum);

  std::shared_ptr<const Sum> sum;
  uint64_t form = 0;                ///< equal for equal terms
  Bits positive = 0, negative = 0;  ///< of the terms by the sign of their coefficients
  Bits reads_low = 0, reads_high = 0;  ///< variables on whose ends the bounds of other variables depend
};

/// A conjunction of facts; each call adds one. From contradictory facts, which hold nowhere, anything may be concluded.
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

  /// Adds `condition` (bool). Comparisons of index expressions become inequalities; anything else is known by its
  /// structure. Returns whether it adds something.
  bool assume(const Expr& condition);
  /// As `assume`, for a condition that is in normal form under these facts; `value` false says that it does not hold.
  void assume_normal(const Expr& condition, bool value = true);

  Interval range_of(const Var* var) const;
  Residue residue_of(const Var* var) const;
  /// Of sums that differ by a constant only the smallest.
  const SharedList<Inequality>& inequalities() const { return inequalities_; }
  /// The truth of a simplified condition that was assumed (or whose negation was).
  std::optional<bool> known(const Expr& condition) const;
  /// True only if no assignment satisfies the facts (a variable's range or residue has become empty); false implies
  /// nothing.
  bool contradictory() const { return contradictory_; }

 private:
  void learn(const Expr& condition, bool value);
  void learn_nonnegative(std::optional<Sum> sum);
  /// Does it add something to what is known?
  bool add_inequality(Inequality added);
  /// `sum` is 0 modulo `modulus` (0: is 0).
  void learn_congruence(const Sum& sum, int64_t modulus);
  void narrow_ranges();
  void narrow_by(const Sum& sum);
  /// Did the range change?
  bool narrow(const Var* var, const Interval& range);

  std::unordered_map<const Var*, Interval> ranges_;
  std::unordered_map<const Var*, Residue> residues_;
  struct Truth {
    Expr condition;
    bool value;
    uint64_t hash;
  };

  SharedList<Inequality> inequalities_;
  SharedList<Truth> truths_;
  Bits low_changed_ = 0, high_changed_ = 0;  ///< ends of ranges that changed since the last propagation
  bool contradictory_ = false;
};

/// An interval that contains every value of `e` under the facts: exact for sums of independent variables, else an outer
/// bound. Bool is 0 and 1; a float has no interval (everything).
Interval interval_of(const Expr& e, const Facts& facts);
Interval interval_of(const Sum& sum, const Facts& facts);
Interval interval_of(const Term& term, const Facts& facts);

/// A residue that contains every value of an integer expression under the facts. For data integers: constants and
/// variables only, since their arithmetic wraps.
Residue residue_of(const Expr& e, const Facts& facts);
Residue residue_of(const Sum& sum, const Facts& facts);

}  // namespace helve
