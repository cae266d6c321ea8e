// The one normal form of `index` expressions: a sum of coefficient times product of atoms, and a constant.
// Equality of addresses, bounds and strides becomes equality of sums, so every question is put to this form.
//
// Atoms are what is neither a sum nor a product: variables, loads, casts, quotients, remainders, minima, maxima,
// selections; also a sum or product whose coefficients would leave int64, or that would have more than kTermLimit terms
// or kFactorLimit factors.
// Written out: terms with positive coefficient first, then the negative ones as subtractions; among these the higher
// degree first, then the larger |coefficient|, then `compare_structure` of the factors; the constant last (first where
// no term is positive but it is: `5 - x`). Factors of a product in `compare_structure` order, the coefficient last: `i
// * n * 4`.
#pragma once

#include <optional>
#include <vector>

#include "helve/ir/expr/expr.h"

namespace helve {

inline constexpr size_t kTermLimit = 32;
inline constexpr size_t kFactorLimit = 16;

/// coefficient * factors[0] * factors[1] * ...; the coefficient is not 0 and there is at least one factor.
struct Term {
  int64_t coefficient;
  std::vector<Expr> factors;
};

struct Sum {
  std::vector<Term> terms;  ///< no two with the same factors
  int64_t constant = 0;

  bool is_constant() const { return terms.empty(); }
  /// The atom when the sum is exactly one atom, else null.
  Expr atom() const;
};

/// A total preorder of expressions by structure and names, the same in every run. Distinct variables of one name tie.
int compare_structure(const Expr& a, const Expr& b);
/// Structural equality; variables and storages by identity. Shared parts are not descended into.
bool same_expr(const Expr& a, const Expr& b);
/// The same factors, in any order.
bool same_factors(const std::vector<Expr>& a, const std::vector<Expr>& b);

/// An index expression as a sum; exact for every expression (parts that do not fit are atoms).
Sum sum_of(const Expr& e);
/// The expression in the written order above, with `span` on a node that is new.
Expr expr_of(const Sum& sum, Span span = {});

/// Exact or empty: empty when a coefficient leaves int64 (or a product has too many terms).
std::optional<Sum> add(const Sum& a, const Sum& b, int64_t scale = 1);
std::optional<Sum> scale(const Sum& a, int64_t factor);
std::optional<Sum> multiply(const Sum& a, const Sum& b);
std::optional<Sum> add_constant(const Sum& a, int64_t value);
/// The same sum with its terms in written order.
Sum ordered(Sum sum);
/// Is the coefficient negative of the term that would be written first if all were positive?
bool leads_with_negative(const Sum& sum);
/// The greatest common divisor of the coefficients of the terms (not of the constant); 0 without terms or at 2^63.
int64_t coefficient_gcd(const Sum& sum);
/// What the sum grows by when `var` grows by 1: 0 where it does not occur; nothing where that is no constant, or where
/// it stands inside of a factor.
std::optional<int64_t> coefficient_of(const Sum& sum, const Var* var);

}  // namespace helve
