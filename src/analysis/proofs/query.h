// One exact question under construction: variables, conditions, and what makes it inexact.
// Bounds and races differ in what they ask, not in how a path becomes a set.
#pragma once

#include <string>
#include <vector>

#include "helve/analysis/proofs.h"
#include "helve/ir/expr/visit.h"
#include "program.h"

namespace helve::proofs {

/// The exact engine of one compile and how many questions it may still be asked.
struct Budget {
  ExactEngine engine;
  int questions = 200;
};

class Query {
 public:
  /// Starts with the function's extents (0 or more) and scalar parameters.
  explicit Query(const Program& program);

  /// The variables and conditions of a step, renamed.
  void add(const Step& step, const Substitution& renamed = {});
  void add_variable(const VarRef& var) { vars_.push_back(var); }
  void require(const Expr& condition) { conditions_.push_back(condition); }
  /// From now on a counterexample says nothing.
  void doubt(const std::string& reason);

  /// Does nothing satisfy all conditions, `violation` among them? Refuted only when this holds of every value of the scalar
  /// parameters under which the other conditions can be satisfied.
  Answer excludes(const Expr& violation, Budget& budget) const;

 private:
  Expr conjunction(const Expr& last) const;

  const Program& program_;
  std::vector<VarRef> scalars_;
  std::vector<VarRef> vars_;
  std::vector<Expr> conditions_;
  Facts facts_;
  std::string doubt_;
};

/// The value under a witness; empty when it is not determined.
std::optional<int64_t> evaluate(const Expr& e, const Witness& witness);

/// "b=1, i=36": the variables of the witness that the expressions mention.
std::string mentioned_text(const Witness& witness, const std::vector<Expr>& exprs);

}  // namespace helve::proofs
