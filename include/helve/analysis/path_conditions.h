// What holds at a place of a program, as variables and conditions of a set.
// Proofs and dependences turn paths into sets by the same rules.
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "helve/analysis/access.h"
#include "helve/arith/facts.h"
#include "helve/arith/relation.h"
#include "helve/ir/expr/visit.h"

namespace helve {

/// Does the step say anything but that a name has some value, or that code may run?
inline bool says_something(const Step& step) { return !step.begins.empty() || step.value || step.condition; }

/// The model, or the set of buffers that nothing writes, must outlive it.
class PathConditions {
 public:
  explicit PathConditions(const AccessModel& model) : PathConditions(model.constant) {}
  explicit PathConditions(const std::unordered_set<const Storage*>& constant) : constant_(constant) {}

  /// The variables and conditions of a step, renamed.
  void add(const Step& step, const Substitution& renamed = {});
  void add_variable(const VarRef& var) { vars_.push_back(var); }
  void require(const Expr& condition) { conditions_.push_back(condition); }
  /// From now on a counterexample proves nothing.
  void doubt(const std::string& reason);

  const std::unordered_set<const Storage*>& constant() const { return constant_; }
  const std::vector<VarRef>& vars() const { return vars_; }
  const std::vector<Expr>& conditions() const { return conditions_; }
  /// Learned when somebody needs them: most questions about a path do not.
  const Facts& facts() const;
  /// For sets of these conditions; uses this object.
  Translation translation() const {
    return {[this]() -> const Facts& { return facts(); }, &constant_};
  }
  /// The first reason of a doubt; empty if there is none.
  const std::string& doubts() const { return doubt_; }

 protected:
  mutable Facts facts_;  ///< of steps that are learned, and what is no step

 private:
  mutable std::vector<Step> later_;  ///< steps that are not learned yet
  const std::unordered_set<const Storage*>& constant_;
  std::vector<VarRef> vars_;
  std::vector<Expr> conditions_;
  std::string doubt_;
};

}  // namespace helve
