// Sums of products: conversion from and to expressions, exact arithmetic.
// Every operation checks for overflow, because index arithmetic is unbounded and a wrapped coefficient would be a wrong
// address.
#include "helve/arith/sum.h"

#include <algorithm>
#include <numeric>

#include "helve/ir/expr/build.h"
#include "helve/ir/expr/visit.h"
#include "int64_ends.h"

namespace helve {

namespace {

Expr make_op(Op op, std::vector<Expr> args, Span span) {
  Ref<Apply> node = make_ref<Apply>(kIndex, op, std::move(args));
  node->span = span;
  return Expr(node);
}

Sum atom_sum(const Expr& e) { return {{{1, {e}}}, 0}; }

bool before(const Expr& a, const Expr& b) { return compare_structure(a, b) < 0; }

/// Adds one term; false on overflow.
bool add_term(Sum& sum, Term term) {
  if (term.coefficient == 0) return true;
  for (size_t i = 0; i < sum.terms.size(); ++i) {
    Term& known = sum.terms[i];
    if (!same_factors(known.factors, term.factors)) continue;
    if (__builtin_add_overflow(known.coefficient, term.coefficient, &known.coefficient)) return false;
    if (known.coefficient == 0) sum.terms.erase(sum.terms.begin() + static_cast<std::ptrdiff_t>(i));
    return true;
  }
  sum.terms.push_back(std::move(term));
  return true;
}

bool term_before(const Term& a, const Term& b) {
  if ((a.coefficient > 0) != (b.coefficient > 0)) return a.coefficient > 0;
  if (a.factors.size() != b.factors.size()) return a.factors.size() > b.factors.size();
  if (a.coefficient != b.coefficient) {
    return a.coefficient > 0 ? a.coefficient > b.coefficient : a.coefficient < b.coefficient;
  }
  for (size_t i = 0; i < a.factors.size(); ++i) {
    if (int c = compare_structure(a.factors[i], b.factors[i]); c != 0) return c < 0;
  }
  return false;
}

Expr product_of(const Term& term, int64_t coefficient, Span span) {
  Expr out = term.factors[0];
  for (size_t i = 1; i < term.factors.size(); ++i) out = make_op(Op::Mul, {out, term.factors[i]}, span);
  if (coefficient == 1) return out;
  if (coefficient == -1) return make_op(Op::Neg, {out}, span);
  return make_op(Op::Mul, {out, int_imm(coefficient, kIndex, span)}, span);
}

}  // namespace

Expr Sum::atom() const {
  return constant == 0 && terms.size() == 1 && terms[0].coefficient == 1 && terms[0].factors.size() == 1
             ? terms[0].factors[0]
             : Expr();
}

bool same_factors(const std::vector<Expr>& a, const std::vector<Expr>& b) {
  if (a.size() != b.size()) return false;
  if (std::equal(a.begin(), a.end(), b.begin(), same_expr)) return true;
  return a.size() > 1 && std::is_permutation(a.begin(), a.end(), b.begin(), same_expr);
}

std::optional<Sum> add_constant(const Sum& a, int64_t value) {
  Sum out = a;
  if (__builtin_add_overflow(a.constant, value, &out.constant)) return std::nullopt;
  return out;
}

std::optional<Sum> add(const Sum& a, const Sum& b, int64_t factor) {
  Sum out = a;
  int64_t scaled;
  if (__builtin_mul_overflow(b.constant, factor, &scaled)) return std::nullopt;
  if (__builtin_add_overflow(out.constant, scaled, &out.constant)) return std::nullopt;
  for (const Term& term : b.terms) {
    if (__builtin_mul_overflow(term.coefficient, factor, &scaled)) return std::nullopt;
    if (!add_term(out, {scaled, term.factors})) return std::nullopt;
  }
  return out;
}

std::optional<Sum> scale(const Sum& a, int64_t factor) { return add(Sum{}, a, factor); }

std::optional<Sum> multiply(const Sum& a, const Sum& b) {
  if (a.is_constant()) return scale(b, a.constant);
  if (b.is_constant()) return scale(a, b.constant);
  if ((a.terms.size() + 1) * (b.terms.size() + 1) > kTermLimit) return std::nullopt;
  std::optional<Sum> out = scale(a, b.constant);
  if (out) out = add(*out, Sum{b.terms, 0}, a.constant);  // the constants meet once, above
  for (const Term& left : a.terms) {
    for (const Term& right : b.terms) {
      if (!out) return out;
      Term term;
      if (left.factors.size() + right.factors.size() > kFactorLimit) return std::nullopt;
      if (__builtin_mul_overflow(left.coefficient, right.coefficient, &term.coefficient)) return std::nullopt;
      term.factors = left.factors;
      term.factors.insert(term.factors.end(), right.factors.begin(), right.factors.end());
      std::stable_sort(term.factors.begin(), term.factors.end(), before);
      if (!add_term(*out, std::move(term))) return std::nullopt;
    }
  }
  return out;
}

namespace {

Sum sum_in(const Expr& e, Memo<Sum>& known);

Sum sum_of_operator(const Expr& e, const Apply& apply, Memo<Sum>& known) {
  std::optional<Sum> out;
  auto arg = [&](size_t i) { return sum_in(apply.args[i], known); };
  switch (apply.op) {
    case Op::Add: out = add(arg(0), arg(1)); break;
    case Op::Sub: out = add(arg(0), arg(1), -1); break;
    case Op::Neg: out = scale(arg(0), -1); break;
    case Op::Mul: out = multiply(arg(0), arg(1)); break;
    default: break;
  }
  return out && out->terms.size() <= kTermLimit ? *out : atom_sum(e);
}

Sum sum_in(const Expr& e, Memo<Sum>& known) {
  if (const int64_t* value = int_value(e)) return {{}, *value};
  const Apply* apply = as<Apply>(e);
  if (!apply || !e->dtype.is_index()) return atom_sum(e);
  return known.of(e, [&] { return sum_of_operator(e, *apply, known); });
}

}  // namespace

Sum sum_of(const Expr& e) {
  Memo<Sum> known;
  return sum_in(e, known);
}

Sum ordered(Sum sum) {
  std::stable_sort(sum.terms.begin(), sum.terms.end(), term_before);
  return sum;
}

Expr expr_of(const Sum& sum, Span span) {
  if (sum.terms.empty()) return int_imm(sum.constant, kIndex, span);
  const std::vector<Term> terms = ordered(sum).terms;
  Expr out;
  bool constant_done = sum.constant == 0;
  if (terms[0].coefficient < 0 && sum.constant > 0) {
    out = int_imm(sum.constant, kIndex, span);
    constant_done = true;
  }
  for (const Term& term : terms) {
    if (!out) {
      out = product_of(term, term.coefficient, span);
    } else if (term.coefficient > 0 || term.coefficient == kInt64Min) {
      out = make_op(Op::Add, {out, product_of(term, term.coefficient, span)}, span);
    } else {
      out = make_op(Op::Sub, {out, product_of(term, -term.coefficient, span)}, span);
    }
  }
  if (constant_done) return out;
  if (sum.constant > 0 || sum.constant == kInt64Min) {
    return make_op(Op::Add, {out, int_imm(sum.constant, kIndex, span)}, span);
  }
  return make_op(Op::Sub, {out, int_imm(-sum.constant, kIndex, span)}, span);
}

bool leads_with_negative(const Sum& sum) {
  const Term* lead = nullptr;
  Term best{0, {}};
  for (const Term& term : sum.terms) {
    if (term.coefficient == kInt64Min) return false;
    Term positive{std::abs(term.coefficient), term.factors};
    if (lead && !term_before(positive, best)) continue;
    lead = &term;
    best = std::move(positive);
  }
  return lead && lead->coefficient < 0;
}

int64_t coefficient_gcd(const Sum& sum) {
  int64_t gcd = 0;
  for (const Term& term : sum.terms) {
    if (term.coefficient == kInt64Min) return 0;
    gcd = std::gcd(gcd, term.coefficient);
  }
  return gcd;
}

std::optional<int64_t> coefficient_of(const Sum& sum, const Var* var) {
  int64_t out = 0;
  for (const Term& term : sum.terms) {
    if (term.factors.size() == 1 && term.factors[0].get() == var) {
      out = term.coefficient;
    } else if (std::any_of(term.factors.begin(), term.factors.end(),
                           [&](const Expr& factor) { return mentions(factor, var); })) {
      return std::nullopt;
    }
  }
  return out;
}

}  // namespace helve
