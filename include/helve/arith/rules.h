// Rewrite rules as data: what a pattern is, and the two tables.
// One loop applies all rules and one loop tests all of them, so no rule can be wrong alone.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "helve/ir/expr/expr.h"

namespace helve {

/// Which operands a rule may see. Data integers wrap: their rules hold modulo 2^n for every n, signed or not.
enum class RuleDomain { Index, Data, Integer, Bool, Any };

/// `left` becomes `right` if `condition` (over the constants; null: always) holds. Pattern variables: those of
/// `pattern_constants()` match constants, bool ones conditions, all others any expression of the domain's type (one
/// type for all of them; written as `index` in the table).
struct Rule {
  std::string_view name;
  RuleDomain domain;
  Expr left;
  Expr right;
  Expr condition;
};

/// In a sum, k*factor*first*F + k*second*F becomes k*right*F for every integer k and product F. `factor` is over
/// constants.
struct SumRule {
  std::string_view name;
  Expr first;
  Expr factor;
  Expr second;
  Expr right;
  Expr condition;
};

/// Tried in order at the root of a node whose operands are simplified.
const std::vector<Rule>& rewrite_rules();
const std::vector<SumRule>& sum_rules();
/// The variables of the tables that match constants.
const std::vector<VarRef>& pattern_constants();

/// The bindings of a pattern's variables.
using Bindings = std::vector<std::pair<const Var*, Expr>>;

/// Extends `bindings` so that `pattern` becomes `e`; false if there is no such extension (bindings are then
/// unspecified).
bool match(const Expr& pattern, const Expr& e, RuleDomain domain, Bindings& bindings);
/// The pattern with its variables replaced; index nodes of the pattern take `dtype`. Constant parts are computed; null
/// if one overflows int64 or is undefined.
Expr instantiate(const Expr& pattern, const Bindings& bindings, DType dtype, Span span);
/// Does the condition hold of the bound constants? A condition that cannot be computed does not hold.
bool holds(const Expr& condition, const Bindings& bindings);

/// `e` rewritten once at its root by the first matching rule; null if there is none.
Expr apply_rules(const Expr& e);

}  // namespace helve
