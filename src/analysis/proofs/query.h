// One exact question under construction: variables, conditions, and what makes it inexact.
// Bounds and races differ in what they ask, not in how a path becomes a set.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "helve/analysis/access.h"
#include "helve/analysis/proofs.h"
#include "helve/arith/relation.h"
#include "helve/ir/expr/visit.h"

namespace helve::proofs {

/// Operators of the largest condition that a call evaluates.
inline constexpr int kConditionLimit = 24;

inline constexpr std::string_view kOverBudget = "over the budget of questions";

/// The exact engine of one compile and how many questions it may still be asked.
struct Budget {
  ExactEngine engine;
  int questions = 200;
};

/// The answer to a question about all calls. Checked comes with the condition under which it holds.
struct Finding {
  ProofVerdict verdict = ProofVerdict::Unknown;
  Witness witness;
  std::string reason;
  Expr condition;
};

/// What holds after a path, for every path of a program.
class PathFacts {
 public:
  explicit PathFacts(const AccessModel& model);
  const Facts& after(const Path& path) { return after(path, path.size()); }

 private:
  const Facts& after(const Path& path, size_t count);

  const AccessModel& model_;
  Facts root_;
  std::unordered_map<const Step*, Facts> known_;  ///< a step stands on one path only
};

class Query {
 public:
  /// Starts with the function's extents (0 or more) and scalar parameters.
  explicit Query(const AccessModel& model);

  /// The variables and conditions of a step, renamed.
  void add(const Step& step, const Substitution& renamed = {});
  void add_variable(const VarRef& var) { vars_.push_back(var); }
  void require(const Expr& condition) { conditions_.push_back(condition); }
  /// From now on a counterexample says nothing.
  void doubt(const std::string& reason);

  /// Does nothing satisfy all conditions, `violation` among them? Refuted when this is broken for all extents and
  /// parameters with which the other conditions can be satisfied, checked when it is for some of them.
  Finding excludes(const Expr& violation, Budget& budget) const;

 private:
  void require_range(const VarRef& var);
  Expr conjunction(const Expr& last) const;
  /// Decides between refuted and checked: `broken` has a point.
  Finding depending(const IntegerSet& broken, Finding refuted, const Expr& violation, Budget& budget) const;

  const AccessModel& model_;
  std::vector<VarRef> given_;  ///< by the call: extents, integer parameters
  std::vector<VarRef> vars_;
  std::vector<Expr> conditions_;
  size_t ranges_ = 0;  ///< the first conditions: the ranges of extents and parameters
  Facts facts_;
  std::string doubt_;
};

/// The condition of a finding as one of every call, whose place the call knows; `claim`, made at `span`, holds only
/// then.
CallCondition call_condition(const Function& f, const Expr& condition, const std::string& claim, const Span& span,
                             std::vector<Note> notes);

/// Makes the proof's answer at least as bad as `verdict`.
void weaken(Proof& proof, ProofVerdict verdict, const std::string& reason = {});

/// The value under a witness; empty when it is not determined.
std::optional<int64_t> evaluate(const Expr& e, const Witness& witness);

/// "b=1, i=36": the variables of the witness that the expressions mention.
std::string mentioned_text(const Witness& witness, const std::vector<Expr>& exprs);

}  // namespace helve::proofs
