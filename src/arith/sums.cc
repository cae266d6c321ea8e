// Sums with the sum rules applied.
// Quotients and remainders of one value meet again here: (x // c) * c + x % c is x.
#include "helve/arith/rules.h"
#include "helve/ir/expr/build.h"
#include "simplifier.h"

namespace helve {

namespace {

/// The term without its factor at `index`.
std::vector<Expr> others(const Term& term, size_t index) {
  std::vector<Expr> rest = term.factors;
  rest.erase(rest.begin() + static_cast<std::ptrdiff_t>(index));
  return rest;
}

/// `right` times k when one factor of `first` and one of `second` fit the rule and all else agrees; null otherwise.
Expr join(const SumRule& rule, const Term& first, const Term& second, std::vector<Expr>& rest) {
  for (size_t i = 0; i < first.factors.size(); ++i) {
    if (as_op(first.factors[i], as<Apply>(rule.first)->op) == nullptr) continue;
    for (size_t j = 0; j < second.factors.size(); ++j) {
      Bindings bindings;
      if (!match(rule.first, first.factors[i], RuleDomain::Index, bindings)) continue;
      if (!match(rule.second, second.factors[j], RuleDomain::Index, bindings)) continue;
      if (!holds(rule.condition, bindings)) continue;
      const Expr factor = instantiate(rule.factor, bindings, kIndex, {});
      int64_t expected;
      if (!factor || __builtin_mul_overflow(second.coefficient, *int_value(factor), &expected)) continue;
      if (expected != first.coefficient) continue;
      rest = others(first, i);
      if (!same_factors(rest, others(second, j))) continue;
      if (Expr right = instantiate(rule.right, bindings, kIndex, {})) return right;
    }
  }
  return {};
}

}  // namespace

bool Simplifier::join_terms(Sum& sum) {
  for (const SumRule& rule : sum_rules()) {
    for (size_t i = 0; i < sum.terms.size(); ++i) {
      for (size_t j = 0; j < sum.terms.size(); ++j) {
        std::vector<Expr> rest;
        const Expr right = i == j ? Expr() : join(rule, sum.terms[i], sum.terms[j], rest);
        if (!right) continue;
        Sum multiplier{{}, sum.terms[j].coefficient};
        if (!rest.empty()) multiplier = {{{sum.terms[j].coefficient, rest}}, 0};
        std::optional<Sum> joined = multiply(sum_of(simplify(right)), multiplier);
        std::optional<Sum> left = add(sum, Sum{{sum.terms[i], sum.terms[j]}, 0}, -1);
        if (left && joined) left = add(*left, *joined);
        if (!left || !joined) continue;
        sum = *left;
        return true;
      }
    }
  }
  return false;
}

Expr Simplifier::written(Sum sum, Span span) {
  while (join_terms(sum)) {
  }
  if (auto value = interval_of(sum, facts_).single()) return int_imm(*value, kIndex, span);
  return expr_of(sum, span);
}

}  // namespace helve
