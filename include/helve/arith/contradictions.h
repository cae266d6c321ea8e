// Conditions that cannot all hold, found part by part.
// Loop nests make conjunctions of many conditions on few variables each; taken apart, most contradictions are between
// two of them, and the rest is a question to isl about a few variables instead of all.
#pragma once

#include <memory>
#include <unordered_set>
#include <vector>

#include "helve/arith/relation.h"

namespace helve {

/// Remembers what it was asked, whatever the names of variables were that are not fixed.
class Contradictions {
 public:
  explicit Contradictions(const ExactEngine& engine);
  ~Contradictions();
  Contradictions(const Contradictions&) = delete;
  Contradictions& operator=(const Contradictions&) = delete;

  struct Condition;
  /// Conditions that all hold, taken apart: what each says is found once, here, and not in each question.
  using Conjunction = std::vector<const Condition*>;
  Conjunction known(const std::vector<Expr>& conditions);

  /// Is it proved that there are no values of the variables for which all conditions hold, for any values of those that
  /// are `fixed`? Conditions that share no other variable are decided apart. Only parts with a condition of `more` are
  /// questions to isl. False says nothing.
  bool found(const Conjunction& conditions, const Conjunction& more, const std::unordered_set<const Var*>& fixed);
  bool found(const std::vector<Expr>& conditions, const std::unordered_set<const Var*>& fixed) {
    return found({}, known(conditions), fixed);
  }

  /// The same of two conditions that bound one sum, or one that no integers meet, and of nothing else: without isl.
  bool excluded(const Conjunction& conditions, const Conjunction& more = {});

 private:
  struct Memory;
  std::unique_ptr<Memory> memory_;
};

}  // namespace helve
