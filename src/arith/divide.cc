// Quotients and remainders of sums.
// With g a divisor of c, sum = g*A + B and 0 <= B < g: sum // c = A // (c/g) and sum % c = g*(A % (c/g)) + B. All else
// follows.
#include <algorithm>
#include <numeric>

#include "helve/ir/expr/build.h"
#include "int64_ends.h"
#include "prove.h"
#include "simplifier.h"

namespace helve {

namespace {

/// What a divisor takes out of a sum: sum = divisor * whole + rest, coefficients of rest smaller than the divisor, its
/// constant in [0, divisor).
struct Division {
  Sum whole;
  Sum rest;
};

Division divide(const Sum& sum, int64_t divisor) {
  Division out;
  for (const Term& term : sum.terms) {
    if (int64_t q = term.coefficient / divisor; q != 0) out.whole.terms.push_back({q, term.factors});
    if (int64_t r = term.coefficient % divisor; r != 0) out.rest.terms.push_back({r, term.factors});
  }
  out.whole.constant = floor_quotient(sum.constant, divisor);
  out.rest.constant = floor_remainder(sum.constant, divisor);
  return out;
}

/// The divisors of `divisor` that some terms share with it, greatest first.
std::vector<int64_t> shared_divisors(const Sum& sum, int64_t divisor) {
  std::vector<int64_t> out;
  for (const Term& term : sum.terms) {
    if (term.coefficient == kInt64Min) continue;  // its magnitude does not fit
    const int64_t g = std::gcd(term.coefficient, divisor);
    if (g > 1) out.push_back(g);
  }
  for (size_t i = 0; i < out.size(); ++i) {  // common divisors of several terms
    for (size_t j = 0; j < i; ++j) {
      const int64_t g = std::gcd(out[i], out[j]);
      if (g > 1 && std::find(out.begin(), out.end(), g) == out.end()) out.push_back(g);
    }
  }
  std::sort(out.begin(), out.end(), std::greater<>());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

/// sum = g * multiple + rest, the terms of multiple being those divisible by g.
Division split_by(const Sum& sum, int64_t g) {
  Division out;
  for (const Term& term : sum.terms) {
    if (term.coefficient % g == 0) {
      out.whole.terms.push_back({term.coefficient / g, term.factors});
    } else {
      out.rest.terms.push_back(term);
    }
  }
  out.rest.constant = sum.constant;
  return out;
}

/// `sum` without its term at `index`, plus `value`; empty when the constant leaves int64.
std::optional<Sum> replaced(const Sum& sum, size_t index, int64_t value) {
  Sum out = sum;
  out.terms.erase(out.terms.begin() + static_cast<std::ptrdiff_t>(index));
  return add_constant(out, value);
}

Expr raw(Op op, const Expr& a, const Expr& b, Span span) {
  Ref<Apply> node = make_ref<Apply>(kIndex, op, std::vector<Expr>{a, b});
  node->span = span;
  return Expr(node);
}

/// `e` as (value op positive constant), or null.
const Apply* by_constant(const Expr& e, Op op, int64_t& constant) {
  const Apply* node = e ? as_op(e, op) : nullptr;
  const int64_t* value = node ? int_value(node->args[1]) : nullptr;
  if (!value || *value <= 0) return nullptr;
  constant = *value;
  return node;
}

}  // namespace

/// The remainder that the term leaves whatever its value.
std::optional<int64_t> Simplifier::known_remainder(const Term& term, int64_t divisor) const {
  return residue_of(Sum{{term}, 0}, facts_).remainder_by(divisor);
}

/// k with size*k <= sum < size*(k+1) for all values of the sum, if there is one.
std::optional<int64_t> Simplifier::block_of(const Sum& sum, int64_t size) {
  const Interval range = interval_of(sum, facts_);
  if (range.low && range.high) {
    const int64_t k = floor_quotient(*range.low, size);
    if (k == floor_quotient(*range.high, size)) return k;
  }
  if (facts_.inequalities().empty() || sum.is_constant()) return std::nullopt;
  std::optional<Sum> room = scale(sum, -1);
  if (room) room = add_constant(*room, size - 1);
  if (room && proves_nonnegative(sum, facts_) && proves_nonnegative(*room, facts_)) return 0;
  return std::nullopt;
}

Expr Simplifier::quotient(const Sum& sum, int64_t divisor, Span span) {
  if (divisor == 1) return written(sum, span);
  if (auto block = block_of(sum, divisor)) return int_imm(*block, kIndex, span);
  const Division parts = divide(sum, divisor);
  if (!parts.whole.is_constant() || parts.whole.constant != 0) {
    const Expr rest = quotient(parts.rest, divisor, span);
    std::optional<Sum> total = add(parts.whole, sum_of(rest));
    if (total) return written(*total, span);
    return raw(Op::FloorDiv, expr_of(sum, span), int_imm(divisor, kIndex, span), span);
  }
  const bool alone_already = sum.terms.size() == 1 && sum.constant == 0;
  for (size_t i = 0; i < sum.terms.size() && !alone_already;
       ++i) {  // term + R = (term - r) + (R + r), c divides term - r
    const std::optional<int64_t> known = known_remainder(sum.terms[i], divisor);
    const std::optional<Sum> rest = known ? replaced(sum, i, *known) : std::nullopt;
    if (!rest) continue;
    const Expr first = quotient(Sum{{sum.terms[i]}, 0}, divisor, span), second = quotient(*rest, divisor, span);
    if (auto total = add(sum_of(first), sum_of(second))) return written(*total, span);
  }
  for (int64_t g : shared_divisors(sum, divisor)) {
    Division split = split_by(sum, g);
    std::optional<int64_t> block = block_of(split.rest, g);
    if (!block) continue;
    split.whole.constant = *block;
    return quotient(split.whole, divisor / g, span);
  }
  const Sum alone{sum.terms, 0};
  int64_t inner, product;
  if (const Apply* nested = by_constant(alone.atom(), Op::FloorDiv, inner);
      nested && !__builtin_mul_overflow(inner, divisor, &product)) {
    int64_t shift;
    std::optional<Sum> shifted;
    if (!__builtin_mul_overflow(inner, sum.constant, &shift)) shifted = add_constant(sum_of(nested->args[0]), shift);
    if (shifted) return quotient(*shifted, product, span);
  }
  if (const Apply* nested = by_constant(sum.atom(), Op::FloorMod, inner); nested && inner % divisor == 0) {
    return remainder(sum_of(quotient(sum_of(nested->args[0]), divisor, span)), inner / divisor, span);
  }
  return raw(Op::FloorDiv, expr_of(sum, span), int_imm(divisor, kIndex, span), span);
}

Expr Simplifier::remainder(const Sum& sum, int64_t divisor, Span span) {
  if (divisor == 1) return int_imm(0, kIndex, span);
  const Expr unchanged = raw(Op::FloorMod, expr_of(sum, span), int_imm(divisor, kIndex, span), span);
  if (auto block = block_of(sum, divisor)) {
    int64_t start;
    if (__builtin_mul_overflow(*block, divisor, &start) || start == kInt64Min) return unchanged;
    std::optional<Sum> moved = add_constant(sum, -start);
    return moved ? written(*moved, span) : unchanged;
  }
  const Division parts = divide(sum, divisor);
  if (!parts.whole.is_constant() || parts.whole.constant != 0) return remainder(parts.rest, divisor, span);
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    const std::optional<int64_t> known = known_remainder(sum.terms[i], divisor);
    const std::optional<Sum> rest = known ? replaced(sum, i, *known) : std::nullopt;
    if (rest) return remainder(*rest, divisor, span);
  }
  for (const Term& term : sum.terms) {  // y % (k*c) is y modulo c
    for (const Expr& factor : term.factors) {
      int64_t inner;
      const Apply* nested = by_constant(factor, Op::FloorMod, inner);
      if (!nested || inner % divisor != 0) continue;
      std::vector<Expr> rest = term.factors;
      rest.erase(std::find(rest.begin(), rest.end(), factor));
      const Sum multiplier = rest.empty() ? Sum{{}, term.coefficient} : Sum{{{term.coefficient, rest}}, 0};
      std::optional<Sum> value = multiply(sum_of(nested->args[0]), multiplier);
      std::optional<Sum> total = add(sum, Sum{{term}, 0}, -1);
      if (total && value) total = add(*total, *value);
      if (total && value) return remainder(sum_of(written(*total, span)), divisor, span);
    }
  }
  for (int64_t g : shared_divisors(sum, divisor)) {
    Division split = split_by(sum, g);
    std::optional<int64_t> block = block_of(split.rest, g);
    if (!block || g == divisor) continue;
    split.whole.constant = *block;
    int64_t start;
    if (__builtin_mul_overflow(*block, g, &start) || start == kInt64Min) continue;
    std::optional<Sum> low = add_constant(split.rest, -start);
    std::optional<Sum> total = low ? add(*low, sum_of(remainder(split.whole, divisor / g, span)), g) : low;
    if (total) return written(*total, span);
  }
  return unchanged;
}

Expr Simplifier::normalise_division(const Expr& e, const Apply& node) {
  const int64_t* divisor = int_value(node.args[1]);
  if (!divisor) return symbolic_division(e, node);
  if (*divisor <= 0) return e;  // zero is a fault; INT64_MIN has no positive counterpart
  const Sum value = sum_of(node.args[0]);
  return node.op == Op::FloorDiv ? quotient(value, *divisor, e->span) : remainder(value, *divisor, e->span);
}

/// (d*A + B) // d = A + B // d wherever d is not 0; B // d = 0 where 0 <= B < d is proved.
Expr Simplifier::symbolic_division(const Expr& e, const Apply& node) {
  const Sum divisor = sum_of(node.args[1]);
  Sum rest = sum_of(node.args[0]), whole;
  if (divisor.terms.size() == 1 && divisor.constant == 0 && divisor.terms[0].coefficient != kInt64Min) {
    const Term& by = divisor.terms[0];
    const Sum value = rest;
    rest.terms.clear();
    for (const Term& term : value.terms) {
      std::vector<Expr> left = term.factors;
      bool contained = term.coefficient != kInt64Min && term.coefficient % by.coefficient == 0;
      for (const Expr& factor : by.factors) {
        auto it = std::find_if(left.begin(), left.end(), [&](const Expr& f) { return same_expr(f, factor); });
        contained = contained && it != left.end();
        if (contained) left.erase(it);
      }
      if (!contained) {
        rest.terms.push_back(term);
        continue;
      }
      const int64_t q = term.coefficient / by.coefficient;
      std::optional<Sum> more = left.empty() ? add_constant(whole, q) : add(whole, Sum{{{q, left}}, 0});
      if (!more) return e;
      whole = *more;
    }
  } else if (auto difference = add(rest, divisor, -1);
             difference && difference->is_constant() && difference->constant == 0) {
    rest = {};
    whole.constant = 1;
  }
  std::optional<Sum> room = add(divisor, rest, -1);
  if (room) room = add_constant(*room, -1);
  const bool fits = (rest.is_constant() && rest.constant == 0) ||
                    (room && proves_nonnegative(rest, facts_) && proves_nonnegative(*room, facts_));
  if (fits) return written(node.op == Op::FloorDiv ? whole : rest, e->span);
  if (whole.is_constant() && whole.constant == 0) return e;
  const Expr part = simplify(raw(node.op, expr_of(rest, e->span), node.args[1], e->span));
  if (node.op == Op::FloorMod) return part;
  std::optional<Sum> total = add(whole, sum_of(part));
  return total ? written(*total, e->span) : e;
}

}  // namespace helve
