// Where the sums of index notation stand: indices that the left side lacks become indices of reductions.
// The rule is that of the mathematical notation, and does not depend on how sums and products are bracketed: a sum
// distributes over the terms that use its index, and takes in no term that does not.
#include <algorithm>
#include <utility>

#include "helve/notation/index_notation.h"
#include "walk.h"

namespace helve::notation {

namespace {

using Indices = std::vector<Index>;

bool is_sum(const Expr& e) {
  if (const Cast* c = as<Cast>(e)) return is_sum(c->value);
  if (const Apply* neg = as_op(e, Op::Neg)) return is_sum(neg->args[0]);
  return as_op(e, Op::Add) || as_op(e, Op::Sub);
}

class Placement {
 public:
  explicit Placement(std::vector<Reduction> reductions) : reductions_(std::move(reductions)) {}

  /// `e` with the indices `open` reduced.
  Expr place(const Expr& e, const Indices& open) {
    Indices whole, rest;
    for (const Index& index : used(e, open)) (in_all_terms(e, index) ? whole : rest).push_back(index);
    if (!is_sum(e)) return place_product(e, whole);
    return wrap(rest.empty() ? e : descend(e, rest), whole);
  }

  std::vector<Reduction> take_reductions() { return std::move(reductions_); }

 private:
  Indices used(const Expr& e, const Indices& open) const { return indices_used(e, reductions_, open); }
  bool uses(const Expr& e, const Index& index) const { return !used(e, {index}).empty(); }

  /// Does each term of the sum `e` use the index?
  bool in_all_terms(const Expr& e, const Index& index) const {
    if (!is_sum(e)) return uses(e, index);
    const std::vector<Expr>& parts = as<Cast>(e) ? std::vector{as<Cast>(e)->value} : as<Apply>(e)->args;
    return std::all_of(parts.begin(), parts.end(), [&](const Expr& part) { return in_all_terms(part, index); });
  }

  /// The sum `e` with sums in its terms.
  Expr descend(const Expr& e, const Indices& open) {
    if (!is_sum(e)) return place(e, open);
    if (const Cast* c = as<Cast>(e)) return helve::cast(descend(c->value, open), c->dtype, c->span);
    const Apply& a = *as<Apply>(e);
    std::vector<Expr> args;
    for (const Expr& part : a.args) args.push_back(descend(part, open));
    return helve::apply(a.op, std::move(args), a.span);
  }

  /// A term. Indices that only one factor uses, a sum with other terms, are reduced inside of it.
  Expr place_product(const Expr& e, const Indices& open) {
    Indices whole, inner;
    for (const Index& index : open) {
      std::vector<Expr> holders;
      bool opaque = false;
      collect_holders(e, index, holders, opaque);
      const bool inside = !opaque && holders.size() == 1 && is_sum(holders[0]) && !in_all_terms(holders[0], index);
      (inside ? inner : whole).push_back(index);
    }
    return wrap(inner.empty() ? e : into_factors(e, inner), whole);
  }

  /// The factors of `e` that use the index; `opaque` if a divisor does.
  void collect_holders(const Expr& e, const Index& index, std::vector<Expr>& holders, bool& opaque) const {
    if (const Apply* product = as_op(e, Op::Mul)) {
      for (const Expr& factor : product->args) collect_holders(factor, index, holders, opaque);
    } else if (const Apply* quotient = as_op(e, Op::Div)) {
      collect_holders(quotient->args[0], index, holders, opaque);
      opaque |= uses(quotient->args[1], index);
    } else if (const Expr inside = under_sign(e)) {
      collect_holders(inside, index, holders, opaque);
    } else if (uses(e, index)) {
      holders.push_back(e);
    }
  }

  Expr into_factors(const Expr& e, const Indices& open) {
    if (used(e, open).empty()) return e;
    if (const Apply* product = as_op(e, Op::Mul)) {
      return helve::apply(Op::Mul, {into_factors(product->args[0], open), into_factors(product->args[1], open)},
                          e->span);
    }
    if (const Apply* quotient = as_op(e, Op::Div)) {
      return helve::apply(Op::Div, {into_factors(quotient->args[0], open), quotient->args[1]}, e->span);
    }
    if (const Expr inside = under_sign(e)) {
      Expr out = into_factors(inside, open);
      return as<Cast>(e) ? helve::cast(std::move(out), e->dtype, e->span)
                         : helve::apply(Op::Neg, {std::move(out)}, e->span);
    }
    return place(e, open);
  }

  /// The product below a sign or a conversion; null for everything else.
  static Expr under_sign(const Expr& e) {
    const Cast* c = as<Cast>(e);
    const Apply* neg = as_op(e, Op::Neg);
    if (is_sum(e) || (!c && !neg)) return {};
    return c ? c->value : neg->args[0];
  }

  Expr wrap(const Expr& e, const Indices& over) {
    if (over.empty()) return e;
    IndexExpr sum = reduce(ReduceKind::Sum, over, {e, reductions_}, e->span);
    reductions_ = merge(std::move(reductions_), sum.reductions);
    return sum.value;
  }

  std::vector<Reduction> reductions_;
};

}  // namespace

Assignment place_sums(const Assignment& assignment) {
  Indices open;
  for (const Index& index : assignment.indices) {
    const auto& left = assignment.subscripts;
    if (std::none_of(left.begin(), left.end(), [&](const Expr& s) { return s.get() == index.var.get(); }))
      open.push_back(index);
  }
  Assignment out = assignment;
  Placement placement(assignment.value.reductions);
  out.value.value = placement.place(assignment.value.value, open);
  // A reduction inside of a sum was replaced by one that uses the sum's index.
  out.value.reductions = reductions_used(out.value.value, placement.take_reductions());
  return out;
}

}  // namespace helve::notation
