// Two instances of the new region, and the cases in which their order is not the old one.
// The check of order asks for them of each dependence; which cases have instances is for the check.
#pragma once

#include "rewrite.h"

namespace helve::legality {

/// Two statements of the new region, the variables of the second one renamed.
class NewPair {
 public:
  NewPair(const RegionStatement& first, const RegionStatement& second);

  /// The cases in which the second runs before the first (`turned`), or in a different iteration of a loop that has no
  /// order (`at_once`): a case for each loop that may put them there.
  OrderCases against_order(bool turned, bool at_once) const;

  /// The two are in one iteration of the first `count` loops.
  std::vector<Expr> in_one_iteration(size_t count) const { return related(count, Op::Eq); }
  /// The cases in which they are not.
  OrderCases apart(size_t count) const;

  const Substitution& renamed() const { return renamed_; }

  IntegerRelation relation(const ExactEngine& engine, const Expr& condition) const;

  /// Does the loop without order come first that the two are in different iterations of?
  bool at_once(const Witness& one, const Witness& other) const;

 private:
  std::vector<Expr> related(size_t count, Op op) const;
  Expr relate(Op op, const VarRef& var) const { return apply(op, {Expr(var), renamed_.at(var.get())}); }

  const RegionStatement& first_;
  const RegionStatement& second_;
  const size_t common_;
  std::vector<VarRef> image_;
  Substitution renamed_;
};

}  // namespace helve::legality
