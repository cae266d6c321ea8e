// An exact query under construction: variables, conditions, and reasons for which it is inexact.
// Proofs of bounds and of races share what is asked of all calls.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "helve/analysis/access.h"
#include "helve/analysis/path_conditions.h"
#include "helve/analysis/path_facts.h"
#include "helve/analysis/proofs.h"
#include "helve/arith/relation.h"
#include "helve/ir/expr/visit.h"

namespace helve::proofs {

/// The size of the largest condition that a call evaluates, in operators.
inline constexpr int kConditionLimit = 24;

inline constexpr std::string_view kOverBudget = "over the budget of queries";

/// The exact engine of one compile and the remaining number of queries.
struct Budget {
  ExactEngine engine;
  int queries = 200;
};

/// The result of a query about all calls. Checked comes with the condition under which it holds.
struct Finding {
  ProofVerdict verdict = ProofVerdict::Unknown;
  Witness witness;
  std::string reason;
  Expr condition;
};

class Query : public PathConditions {
 public:
  /// Starts with the function's extents (0 or more) and scalar parameters.
  explicit Query(const AccessModel& model);

  /// From now on the elements of sorted parameters are in order. Only questions whose answers change no code may rely
  /// on what calls cannot check everywhere.
  void rely_on_order() { relies_on_order_ = true; }

  /// Is the conjunction of all conditions and `violation` unsatisfiable? Refuted if it is satisfiable for all extents
  /// and parameters that satisfy the other conditions, checked if it is for some of them.
  Finding excludes(const Expr& violation, Budget& budget) const;

 private:
  const AccessModel& model() const { return model_; }
  void require_range(const VarRef& var);
  std::vector<Expr> all_conditions(const Expr& last) const;
  /// Adds what sorted parameters say, if the question may rely on it; true if that is something.
  bool add_order(std::vector<Expr>& conditions) const;
  /// Is it unsatisfiable in its coarse form?
  bool is_empty_coarsely(const Expr& violation, Budget& budget) const;
  /// Decides between refuted and checked; `broken` is not empty.
  Finding depending(const IntegerSet& broken, Finding refuted, const Expr& violation, Budget& budget) const;

  const AccessModel& model_;
  std::vector<VarRef> given_;  ///< by the call: extents, integer parameters
  bool relies_on_order_ = false;
  size_t ranges_ = 0;  ///< the first conditions are the ranges of extents and parameters
};

/// The condition of a finding as a condition of every call, whose location only the call knows; `claim`, made at
/// `span`, holds only under it.
CallCondition call_condition(const Function& f, const Expr& condition, const std::string& claim, const Span& span,
                             std::vector<Note> notes);

/// The same with all notes.
CallCondition call_condition(const Function& f, const Expr& condition, const Span& span, std::vector<Note> notes);

/// Makes the proof's answer at least as bad as `verdict`.
void weaken(Proof& proof, ProofVerdict verdict, const std::string& reason = {});

/// The value under a witness; empty when it is not determined.
std::optional<int64_t> evaluate(const Expr& e, const Witness& witness);

/// "b=1, i=36": the variables of the witness that the expressions mention.
std::string mentioned_text(const Witness& witness, const std::vector<Expr>& exprs);

}  // namespace helve::proofs
