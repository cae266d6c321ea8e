// The rewriter behind simplify(): one object holds the facts of the place it stands in.
// Split over files by what is rewritten: sums (sums.cc), quotients (divide.cc), comparisons and minima (compare.cc).
#pragma once

#include <optional>
#include <utility>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/arith/sum.h"
#include "helve/ir/expr/visit.h"

namespace helve {

class Simplifier {
 public:
  /// Under facts that outlive it and that do not change.
  explicit Simplifier(const Facts& facts) : facts_(facts) {}
  /// Under facts that learn() adds to.
  explicit Simplifier(Facts&& facts) : own_(std::move(facts)), facts_(*own_) {}
  Simplifier(const Simplifier&) = delete;
  Simplifier& operator=(const Simplifier&) = delete;

  /// The normal form; `e` itself when that is what it is.
  Expr simplify(const Expr& e);

 private:
  Expr simplify_new(const Expr& e);
  /// `e` with simplified operands (`and`, `or` and selections under what their conditions say).
  Expr simplify_operands(const Expr& e);
  Expr simplify_selection(const Expr& e, const Apply& node);
  /// `e` where `condition` is `value`; null when that is nowhere.
  Expr under(const Expr& condition, bool value, const Expr& e);
  /// A node whose operands are in normal form.
  Expr normalise(const Expr& e);
  Expr normalise_index(const Expr& e, const Apply& node);

  // chains.cc: `and` and `or` of any number of conditions.
  Expr simplify_chain(const Expr& e);

  // sums.cc: an expression of index sums, with all sum rules applied.
  Expr written(Sum sum, Span span);
  bool join_terms(Sum& sum);

  // divide.cc: sum // divisor and sum % divisor in normal form.
  Expr normalise_division(const Expr& e, const Apply& node);
  Expr quotient(const Sum& sum, int64_t divisor, Span span);
  Expr remainder(const Sum& sum, int64_t divisor, Span span);
  Expr symbolic_division(const Expr& e, const Apply& node);
  std::optional<int64_t> known_remainder(const Term& term, int64_t divisor) const;
  std::optional<int64_t> block_of(const Sum& sum, int64_t size);

  // compare.cc
  Expr normalise_comparison(const Expr& e, const Apply& node);
  Expr normalise_extreme(const Expr& e, const Apply& node);

  /// `e` with the operator's own node, reusing `e` when it has these operands.
  static Expr with_operands(const Expr& e, Op op, DType dtype, std::vector<Expr> args);

  /// From here on `condition`, in normal form, is `value`.
  void learn(const Expr& condition, bool value);

  std::optional<Facts> own_;
  const Facts& facts_;
  Memo<Expr> known_;  ///< under these facts
};

/// not (a and b and c) as not a or not b or not c, and the other way round; `e` negates `chain`.
Expr negated_chain(const Expr& e, const Apply& chain);

}  // namespace helve
