// How large the index values of a lowered function can become.
// `index` is unbounded and a machine word is not: this is the one place that says which expression fits which width,
// proved from constants, or under a requirement that the host checks at the call.
#pragma once

#include <functional>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/tensor/function.h"

namespace helve {

/// What an extent of an argument can be at most; calls refuse more (no machine addresses as many bytes).
inline constexpr int64_t kLargestExtent = int64_t{1} << 48;

/// `reach` (over dynamic extents and scalar parameters, no part of it negative in any call) has to stay in int64; then
/// `expression` does, and so do its parts. An empty reach is known to leave it.
struct IndexRequirement {
  std::optional<Sum> reach;
  Expr expression;
  Span span;
};

/// Bounds on the magnitude of every index expression in the kernels of a lowered function. What is said to fit does so
/// as if no condition were there, also where a guard keeps it from being computed and in a lane that is off. Where the
/// statements' guards and the ends of loops bound it closer, only that is required of it: there it is right modulo
/// 2^64, and it is not said to fit unless another requirement says so. So a loop that was divided among threads or
/// lanes asks no more of a call than the loop did. Addresses and loops, whose speed hangs on what is said to fit, gain
/// by this only where their bound is no polynomial.
///
/// A value that comes from 64-bit data has no bound. Arithmetic on it wraps modulo 2^64.
class IndexBounds {
 public:
  explicit IndexBounds(FunctionRef lowered);

  /// Is every value of `e` in int64 whenever the requirements hold?
  bool fits64(const Expr& e) const;
  /// Is every value of `e` in int32, whatever the arguments?
  bool fits32(const Expr& e) const;
  /// Do all partial sums of the element's address, in elements and in bytes, stay in int64 whenever the requirements
  /// hold?
  bool address_fits64(const Buffer& buffer, const std::vector<Expr>& indices) const;

  /// What has to hold of the arguments besides extents up to kLargestExtent, none implied by another by its
  /// coefficients, in program order.
  const std::vector<IndexRequirement>& requirements() const { return requirements_; }

 private:
  /// An upper bound of a magnitude: none known, a sum with coefficients >= 0 of products of what is never negative, or
  /// one whose coefficients leave int64.
  struct Reach {
    enum Kind { None, Bounded, Beyond } kind = None;
    Sum sum;
  };
  /// One place that gives a variable its values: `extent` (null: one value) values from `begin`.
  struct Definition {
    Expr begin;
    Expr extent;
  };
  struct Known {
    Expr e;  ///< keeps the node, whose address is the key
    Reach reach;
  };

  /// What is known of inputs and guards, and what was found from it so far of variables and expressions.
  struct Context {
    Facts facts;
    std::unordered_map<const Var*, Reach> variables;
    std::unordered_set<const Var*> resolving;
    std::unordered_map<const ExprNode*, Known> known;
    std::unordered_map<const ExprNode*, Known> limits;  ///< of expressions, where guards are not asked
  };
  /// What has a requirement, by how much its code gains where it is said to fit.
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
  std::vector<Expr> guards_;  ///< what conditions and ends of loops, the host's too, say where requirements are found
  int conditions_ = 0;  ///< statements' conditions among them
  Facts limits_;  ///< of the extents that a call accepts
  std::vector<Sum> eased_;  ///< bounds of values of which guards let less be required
  std::vector<Sum> unpromised_;  ///< those of them that no requirement implies
  mutable Context context_;
  mutable bool guards_asked_ = true;
  std::optional<Context> guarded_;  ///< the same under `guards_`; empty until it is asked for
};

}  // namespace helve
