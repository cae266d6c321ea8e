// Proof that a sum is not negative.
// p*S = S' + q*M*C with p, q > 0, M >= 0 and C >= 0 makes S >= 0 follow from S' >= 0; each step removes one term of S.
#include "prove.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "helve/ir/expr/build.h"

namespace helve {

namespace {

constexpr int kDepth = 5;
constexpr int kSteps = 100;
constexpr int kLooks = 20'000;  ///< at inequalities, of which few may have a term in common with the sum

void push(std::vector<Sum>& out, std::optional<Sum> sum) {
  if (sum) out.push_back(std::move(*sum));
}

std::optional<Sum> difference(const Sum& a, const Sum& b) { return add(a, b, -1); }

/// divisor * quotient <= value < divisor * (quotient + 1), for a positive divisor.
void quotient_laws(const Sum& atom, const Sum& value, const Sum& divisor, std::vector<Sum>& out) {
  std::optional<Sum> below = multiply(divisor, atom);
  if (!below) return;
  push(out, difference(value, *below));
  std::optional<Sum> above = add(*below, divisor);
  if (above) above = add_constant(*above, -1);
  if (above) push(out, difference(*above, value));
}

/// Inequalities that hold of an atom by its meaning.
void atom_laws(const Expr& atom, const Facts& facts, std::vector<Sum>& out) {
  const Apply* node = as<Apply>(atom);
  if (!node || !atom->dtype.is_index()) return;
  const Sum self = {{{1, {atom}}}, 0};
  const Sum first = sum_of(node->args[0]);
  switch (node->op) {
    case Op::Min:
    case Op::Max: {
      const Sum second = sum_of(node->args[1]);
      const bool least = node->op == Op::Min;
      push(out, least ? difference(first, self) : difference(self, first));
      push(out, least ? difference(second, self) : difference(self, second));
      return;
    }
    case Op::Abs:
      push(out, difference(self, first));
      push(out, add(self, first));
      return;
    case Op::FloorDiv:
      if (interval_of(node->args[1], facts).at_least(1)) quotient_laws(self, first, sum_of(node->args[1]), out);
      return;
    case Op::FloorMod:
      if (!interval_of(node->args[1], facts).at_least(1)) return;
      out.push_back(self);
      if (auto top = add_constant(sum_of(node->args[1]), -1)) push(out, difference(*top, self));
      if (interval_of(first, facts).at_least(0)) push(out, difference(first, self));
      return;
    default: return;
  }
}

/// The factors of `whole` that are left without those of `part`; empty optional when `part` is not contained.
std::optional<std::vector<Expr>> without(const std::vector<Expr>& whole, const std::vector<Expr>& part) {
  const auto stands = [&](const Expr& e) {
    return std::any_of(whole.begin(), whole.end(), [&](const Expr& other) { return same_expr(e, other); });
  };
  if (part.size() > whole.size() || !std::all_of(part.begin(), part.end(), stands)) return std::nullopt;
  if (part.size() == 1 && whole.size() == 1) return std::vector<Expr>();
  std::vector<Expr> rest = whole;
  for (const Expr& factor : part) {
    auto it = rest.begin();
    while (it != rest.end() && !same_expr(*it, factor)) ++it;
    if (it == rest.end()) return std::nullopt;
    rest.erase(it);
  }
  return rest;
}

class Prover {
 public:
  explicit Prover(const Facts& facts) : facts_(facts) {}

  bool nonnegative(Sum sum, int depth) {
    if (--steps_ < 0) return false;
    if (coefficient_gcd(sum) > 1) sum = tightened(sum);
    if (interval_of(sum, facts_).at_least(0)) return true;
    if (depth == 0 || sum.is_constant()) return false;
    return by_elimination(sum, depth) || by_cases(sum, depth);
  }

 private:
  /// What holds of the sum's atoms by their meaning and range.
  std::vector<Sum> laws_for(const Sum& sum) const {
    std::vector<Sum> laws;
    for (const Term& term : sum.terms) {
      for (const Expr& factor : term.factors) {
        atom_laws(factor, facts_, laws);
        if (term.factors.size() == 1) continue;
        const Interval range = interval_of(factor, facts_);
        const Sum self = {{{1, {factor}}}, 0};
        if (range.low && *range.low != std::numeric_limits<int64_t>::min()) push(laws, add_constant(self, -*range.low));
        if (range.high) push(laws, add(Sum{{}, *range.high}, self, -1));
      }
    }
    return laws;
  }

  bool by_elimination(const Sum& sum, int depth) {
    bool any_open = false;
    std::vector<bool> open;
    for (const Term& term : sum.terms) {
      open.push_back(!interval_of(term, facts_).low);
      any_open |= open.back();
    }
    const std::vector<Sum> laws = laws_for(sum);
    for (size_t i = 0; i < sum.terms.size(); ++i) {
      if (any_open && !open[i]) continue;
      const Term& term = sum.terms[i];
      const Bits bits = bits_of(term);
      for (const Inequality& known : facts_.inequalities()) {
        if (--looks_ < 0) return false;
        if (((term.coefficient > 0 ? known.positive : known.negative) & bits) == 0) continue;
        if (by_law(sum, term, *known.sum, depth)) return true;
      }
      for (const Sum& law : laws) {
        if (by_law(sum, term, law, depth)) return true;
      }
    }
    return false;
  }

  bool by_law(const Sum& sum, const Term& term, const Sum& law, int depth) {
    for (const Term& known : law.terms) {
      if (steps_ < 0) return false;
      if (eliminate(sum, term, law, known, depth)) return true;
    }
    return false;
  }

  /// Cancels `term` of the sum by the term `known` of the law, times what `known` lacks.
  bool eliminate(const Sum& sum, const Term& term, const Sum& law, const Term& known, int depth) {
    constexpr int64_t least = std::numeric_limits<int64_t>::min();
    if ((term.coefficient > 0) != (known.coefficient > 0)) return false;
    if (term.coefficient == least || known.coefficient == least) return false;
    std::optional<std::vector<Expr>> rest = without(term.factors, known.factors);
    if (!rest) return false;
    for (const Expr& factor : *rest) {
      if (!interval_of(factor, facts_).at_least(0)) return false;
    }
    const int64_t gcd = std::gcd(term.coefficient, known.coefficient);
    const int64_t p = std::abs(known.coefficient) / gcd, q = std::abs(term.coefficient) / gcd;
    std::optional<Sum> scaled, multiple;
    if (p != 1 && !(scaled = scale(sum, p))) return false;
    if (!rest->empty() && !(multiple = multiply(law, Sum{{{1, *rest}}, 0}))) return false;
    std::optional<Sum> next = add(scaled ? *scaled : sum, multiple ? *multiple : law, -q);
    return next && nonnegative(std::move(*next), depth - 1);
  }

  /// A minimum, maximum or selection is one of its operands: the sum is not negative when it is so with each.
  bool by_cases(const Sum& sum, int depth) {
    for (const Term& term : sum.terms) {
      const Apply* node = term.factors.size() == 1 ? as<Apply>(term.factors[0]) : nullptr;
      if (!node) continue;
      const bool chooses = node->op == Op::Min || node->op == Op::Max || node->op == Op::Select;
      if (!chooses) continue;
      const size_t first = node->op == Op::Select ? 1 : 0;
      std::optional<Sum> rest = add(sum, Sum{{term}, 0}, -1);
      if (!rest) return false;
      for (size_t i = first; i < first + 2; ++i) {
        std::optional<Sum> chosen = add(*rest, sum_of(node->args[i]), term.coefficient);
        if (!chosen || !nonnegative(*chosen, depth - 1)) return false;
      }
      return true;
    }
    return false;
  }

  const Facts& facts_;
  int steps_ = kSteps;
  int looks_ = kLooks;
};

}  // namespace

Sum tightened(const Sum& sum) {
  const int64_t gcd = coefficient_gcd(sum);
  if (gcd <= 1) return sum;
  Sum out = sum;
  for (Term& term : out.terms) term.coefficient /= gcd;
  out.constant = floor_quotient(out.constant, gcd);
  return out;
}

bool proves_nonnegative(const Sum& sum, const Facts& facts) {
  // In written order, so that the bounded search finds the same for the same sum however it came about.
  Prover prover(facts);
  const Residue residue = residue_of(sum, facts);
  if (residue.modulus > 1) {  // a sum that is r modulo m and above r - m is at least r
    const std::optional<Sum> raised = add_constant(sum, residue.modulus - 1 - residue.remainder);
    if (raised) return prover.nonnegative(ordered(*raised), kDepth);
  }
  return prover.nonnegative(ordered(sum), kDepth);
}

}  // namespace helve
