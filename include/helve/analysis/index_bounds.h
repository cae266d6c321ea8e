// The magnitudes of index values of a lowered function.
// `index` is unbounded and a machine word is not: only this analysis decides which width an expression fits, proved
// from constants, or under a requirement that the host checks at the call.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/function.h"

namespace helve {

/// The maximum of an argument's extents; calls refuse more (no machine addresses as many bytes).
inline constexpr int64_t kLargestExtent = int64_t{1} << 48;

/// `reach` (over dynamic extents and scalar parameters, no part of it negative in any call) must stay in int64; then
/// `expression` does, and so do its parts. An empty reach is known to overflow.
struct IndexRequirement {
  std::optional<Sum> reach;
  Expr expression;
  Span span;
};

/// Bounds on the magnitude of every index expression in the kernels of a lowered function. An expression that is said
/// to fit does so regardless of conditions, also where a guard keeps it from being evaluated and in inactive lanes. If
/// guards of statements and ends of loops bound an expression more tightly, only that bound is required: under the
/// guard the expression is then correct modulo 2^64, and it is not said to fit unless another requirement implies it.
/// So a loop that was divided among threads or lanes requires no more of a call than the original loop. For addresses
/// and loops, whose speed depends on what is said to fit, this applies only if their bound is not a polynomial.
///
/// A value that comes from 64-bit data has no bound. Arithmetic on it wraps modulo 2^64.
class IndexBounds {
 public:
  explicit IndexBounds(FunctionRef lowered);

  /// Is every value of `e` in int64 under the requirements?
  bool fits64(const Expr& e) const;
  /// Is every value of `e` in int32, for all arguments?
  bool fits32(const Expr& e) const;
  /// Are all partial sums of the element's address, in elements and in bytes, in int64 under the requirements?
  bool address_fits64(const Buffer& buffer, const std::vector<Expr>& indices) const;

  /// The requirements on arguments besides extents up to kLargestExtent, none implied by another by its coefficients,
  /// in program order.
  const std::vector<IndexRequirement>& requirements() const { return requirements_; }

 private:
  /// An upper bound of a magnitude: unknown, a sum with coefficients >= 0 of products of non-negative values, or one
  /// whose coefficients overflow int64.
  struct Reach {
    enum Kind { None, Bounded, Beyond } kind = None;
    Sum sum;
  };
  /// One definition of a variable: `extent` (null: one value) values from `begin`.
  struct Definition {
    Expr begin;
    Expr extent;
  };
  struct Known {
    Expr e;  ///< keeps the node, whose address is the key
    Reach reach;
  };

  /// Facts about inputs and guards, and the results so far for variables and expressions.
  struct Context {
    Facts facts;
    std::unordered_map<const Var*, Reach> variables;
    std::unordered_set<const Var*> resolving;
    std::unordered_map<const ExprNode*, Known> known;
    std::unordered_map<const ExprNode*, Known> limits;  ///< of expressions, without guards
  };
  /// The kind of a requirement, by how much its code gains if the value is said to fit.
  enum class Use { Value, Address };

  static Reach constant(int64_t value);
  static Reach magnitude(int64_t value);
  static Reach bounded(std::optional<Sum> sum);
  static Reach plus(const Reach& a, const Reach& b);
  static Reach times(const Reach& a, const Reach& b);
  static Reach either(const Reach& a, const Reach& b);

  void collect(const Stmt& s);
  void require(Use use, const std::function<Reach()>& find, const Expr& e, const Span& span);
  Reach under_guards(const std::function<Reach()>& find);
  void walk_guarded(const Stmt& s, const std::function<bool(const Stmt&)>& f);
  void require_below(const Stmt& s);
  void require_region(const Region& region, const Span& span);
  void drop_implied();
  void find_unpromised();
  bool is_promised(const Reach& reach) const;

  Interval range_of(const Expr& e) const;
  void resolve(const Var* var) const;
  Reach reach_of(const Expr& e) const;
  Reach reach_of_var(const VarRef& var) const;
  Reach reach_of_apply(const Apply& node, const Expr& e) const;
  Expr never_negative(const Expr& e) const;
  Reach reach_of_parts(const Expr& e) const;
  Reach reach_of_sum(const Expr& e) const;
  Reach reach_of_term(const Term& term) const;
  Reach closest(const Expr& e, Reach known) const;
  Reach over_inputs(const Sum& sum) const;
  std::optional<Sum> limit_by(const Sum& inequality, const Sum& sum) const;
  bool is_input(const Term& term) const;
  std::optional<Sum> limit_of(const Term& term) const;
  std::optional<Sum> limited(const Sum& inequality) const;
  Reach reach_of_quotient(const Apply& node) const;
  Reach reach_of_shift(const Apply& node) const;
  std::optional<int64_t> proved_amount(const Expr& amount) const;
  Reach reach_of_address(const Buffer& buffer, const std::vector<Expr>& indices) const;

  FunctionRef function_;
  std::unordered_map<const Var*, std::vector<Definition>> definitions_;
  std::unordered_set<const Var*> inputs_;
  std::vector<IndexRequirement> requirements_;
  std::vector<Expr> guards_;  ///< conditions and loop ends, of the host too, where requirements are collected
  int conditions_ = 0;  ///< how many of them are conditions of statements
  Facts limits_;  ///< of the extents that a call accepts
  std::vector<Sum> eased_;  ///< bounds of values that guards make tighter
  std::vector<Sum> unpromised_;  ///< those of them that no requirement implies
  mutable Context context_;
  mutable bool guards_asked_ = true;
  std::optional<Context> guarded_;  ///< the same under `guards_`; computed on demand
};

}  // namespace helve
