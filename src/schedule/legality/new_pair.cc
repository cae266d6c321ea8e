// Cases of the new program's order between two instances.
// What is first in the old region is the first of the two here, wherever it stands.
#include "new_pair.h"

#include <algorithm>

#include "helve/arith/relation_algebra.h"

namespace helve::legality {

NewPair::NewPair(const RegionStatement& first, const RegionStatement& second)
    : first_(first), second_(second), common_(common_loops(first, second)) {
  for (const VarRef& var : second.vars) {
    image_.push_back(make_var(var->name, var->dtype, var->span));
    renamed_[var.get()] = Expr(image_.back());
  }
}

OrderCases NewPair::against_order(bool turned, bool at_once) const {
  const auto agree = [&](const VarRef& var) { return relate(Op::Eq, var); };
  const auto wrong = [&](size_t l, const VarRef& var) {
    const bool ordered = !is_independent(*first_.loops[l]->stmt);
    if (ordered) return turned ? relate(Op::Gt, var) : Expr();
    return at_once ? relate(Op::Ne, var) : Expr();
  };
  return order_cases(first_, second_, agree, wrong, turned && first_.visit > second_.visit);
}

OrderCases NewPair::apart(size_t count) const {
  OrderCases cases;
  for (const Expr& each : related(count, Op::Ne)) cases.push_back({each});
  return cases;
}

IntegerRelation NewPair::relation(const ExactEngine& engine, const Expr& condition) const {
  std::vector<VarRef> tuple = first_.vars;
  tuple.insert(tuple.end(), image_.begin(), image_.end());
  return relation_of(IntegerSet(engine, std::move(tuple), condition), first_.vars.size());
}

bool NewPair::at_once(const Witness& one, const Witness& other) const {
  const auto from_end = [](const Witness& witness, size_t count, size_t at) {
    return witness[witness.size() - count + at].second;
  };
  for (size_t l = 0; l < common_; ++l) {
    for (const VarRef& var : first_.loops[l]->vars) {
      const size_t at =
          static_cast<size_t>(std::find(first_.vars.begin(), first_.vars.end(), var) - first_.vars.begin());
      if (from_end(one, first_.vars.size(), at) != from_end(other, second_.vars.size(), at)) {
        return is_independent(*first_.loops[l]->stmt);
      }
    }
  }
  return false;
}

std::vector<Expr> NewPair::related(size_t count, Op op) const {
  std::vector<Expr> out;
  for (size_t l = 0; l < std::min(count, common_); ++l) {
    for (const VarRef& var : first_.loops[l]->vars) out.push_back(relate(op, var));
  }
  return out;
}

}  // namespace helve::legality
