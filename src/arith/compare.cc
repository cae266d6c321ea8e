// Comparisons, minima and maxima of index expressions.
// Both ask for the sign of a difference, so one proof decides them and equal questions take one form.
#include <algorithm>

#include "helve/ir/expr/build.h"
#include "int64_ends.h"
#include "prove.h"
#include "simplifier.h"

namespace helve {

namespace {

/// The two sides of `sum op 0`: terms with positive coefficient on the left, the negated others and the constant on the
/// right (on the left where no term is). Empty when a side leaves int64.
std::optional<std::pair<Sum, Sum>> sides_of(const Sum& sum) {
  Sum left, right;
  for (const Term& term : sum.terms) {
    if (term.coefficient == kInt64Min) return std::nullopt;
    if (term.coefficient > 0) {
      left.terms.push_back(term);
    } else {
      right.terms.push_back({-term.coefficient, term.factors});
    }
  }
  if (left.terms.empty()) {
    left.constant = sum.constant;
  } else if (sum.constant == kInt64Min) {
    return std::nullopt;
  } else {
    right.constant = -sum.constant;
  }
  return std::pair(left, right);
}

}  // namespace

Expr Simplifier::normalise_comparison(const Expr& e, const Apply& node) {
  const bool flip = node.op == Op::Gt || node.op == Op::Ge;
  const Sum a = sum_of(node.args[flip ? 1 : 0]), b = sum_of(node.args[flip ? 0 : 1]);
  std::optional<Sum> difference = add(a, b, -1);
  const bool equation = node.op == Op::Eq || node.op == Op::Ne;
  // a <= b is a - b - 1 < 0.
  if (difference && (node.op == Op::Le || node.op == Op::Ge)) difference = add_constant(*difference, -1);
  if (!difference) return e;
  Sum sum = *difference;
  while (join_terms(sum)) {
  }
  std::optional<Sum> below = scale(sum, -1);
  if (below) below = add_constant(*below, -1);
  std::optional<Sum> above = equation ? add_constant(sum, -1) : sum;
  const bool less = below && proves_nonnegative(*below, facts_);
  const bool not_less = above && proves_nonnegative(*above, facts_);
  if (!equation && (less || not_less)) return bool_imm(less, e->span);
  if (equation && (less || not_less)) return bool_imm(node.op == Op::Ne, e->span);
  if (sum.is_constant())
    return bool_imm(equation ? (sum.constant == 0) == (node.op == Op::Eq) : sum.constant < 0, e->span);
  const int64_t gcd = coefficient_gcd(sum);
  if (equation) {
    if ((gcd > 1 && sum.constant % gcd != 0) || !residue_of(sum, facts_).contains(0))
      return bool_imm(node.op == Op::Ne, e->span);
    if (std::optional<Sum> negated = scale(sum, -1);
        negated && proves_nonnegative(sum, facts_) && proves_nonnegative(*negated, facts_)) {
      return bool_imm(node.op == Op::Eq, e->span);
    }
  }
  sum = tightened(sum);
  if (equation && leads_with_negative(sum)) {
    std::optional<Sum> negated = scale(sum, -1);
    if (!negated) return e;
    sum = *negated;
  }
  auto sides = sides_of(sum);
  if (!sides) return e;
  return with_operands(e, equation ? node.op : Op::Lt, kBool,
                       {expr_of(sides->first, e->span), expr_of(sides->second, e->span)});
}

Expr Simplifier::normalise_extreme(const Expr& e, const Apply& node) {
  std::vector<Expr> given = operands_of_chain(e, node.op), kept;
  std::stable_sort(given.begin(), given.end(),
                   [](const Expr& a, const Expr& b) { return compare_structure(a, b) < 0; });
  std::vector<bool> dropped(given.size());
  auto decides = [&](size_t i, size_t j) {  // operand i makes operand j superfluous
    std::optional<Sum> room =
        node.op == Op::Min ? add(sum_of(given[j]), sum_of(given[i]), -1) : add(sum_of(given[i]), sum_of(given[j]), -1);
    return room && proves_nonnegative(*room, facts_);
  };
  for (size_t j = 0; j < given.size(); ++j) {
    for (size_t i = 0; i < given.size() && !dropped[j]; ++i) dropped[j] = i != j && !dropped[i] && decides(i, j);
  }
  // An operand is dropped only for one that is still there, so of equal ones the last stays.
  for (size_t i = 0; i < given.size(); ++i) {
    if (!dropped[i]) kept.push_back(given[i]);
  }
  Expr out = kept[0];
  for (size_t i = 1; i < kept.size(); ++i) {
    Ref<Apply> next = make_ref<Apply>(kIndex, node.op, std::vector<Expr>{out, kept[i]});
    next->span = e->span;
    out = Expr(next);
  }
  return out;
}

}  // namespace helve
