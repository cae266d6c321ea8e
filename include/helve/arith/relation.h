// Sets and relations of integer tuples, and exact questions about them.
// The bridge to isl: what interval reasoning leaves open (races, bounds under guards, equality of maps) is decided
// here, within a budget of operations, and tests use it as an oracle for faster paths.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "helve/arith/facts.h"
#include "helve/ir/expr/expr.h"

namespace helve {

enum class Verdict { Proved, Refuted, Unknown };
/// "proved", "refuted", "unknown".
std::string_view to_string(Verdict verdict);

/// Values of variables.
using Witness = std::vector<std::pair<VarRef, int64_t>>;
/// The value of `var`, if the witness names it.
std::optional<int64_t> value_in(const Witness& witness, const Var* var);

/// The reason of an unknown answer that more operations might have found.
inline constexpr std::string_view kOverBudget = "over the budget of operations";

/// The answer to an exact question. Refuted comes with a witness, unknown with a reason.
struct Answer {
  Verdict verdict = Verdict::Unknown;
  Witness witness;
  Witness other;  ///< the second tuple, where two of them refute
  std::string reason;
};

/// The operations of isl that one question may take (a few tens of milliseconds).
inline constexpr int64_t kOperationLimit = 100'000;

/// Where sets and relations live; one for each compile, used by one thread at a time. Copies are the same engine.
class ExactEngine {
 public:
  explicit ExactEngine(int64_t operation_limit = kOperationLimit);

  struct State;
  explicit ExactEngine(std::shared_ptr<State> state) : state_(std::move(state)) {}
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

/// What the translation of expressions may use besides their text.
struct Translation {
  const Facts* facts = nullptr;  ///< ranges, under which a conversion to a data integer keeps its value
  const std::unordered_set<const Storage*>* constant = nullptr;  ///< storages whose contents do not change
};

/// { tuple : condition }. Variables of the condition outside the tuple and the locals are parameters; locals are
/// quantified existentially.
///
/// Affine expressions, // and % by constants, min, max, abs, selections, shifts and masks by constants, comparisons and
/// connectives are exact. Any other part (a product of variables, a load) stands for some unknown value: the set is
/// then larger than what is meant, so that emptiness is still proved but never refuted.
class IntegerSet {
 public:
  IntegerSet(const ExactEngine& engine, std::vector<VarRef> tuple, const Expr& condition,
             std::vector<VarRef> locals = {}, const Translation& translation = {});

  const std::vector<VarRef>& tuple() const;
  /// Why the set is larger than what is meant; empty when it is exact.
  const std::string& inexact() const;

  /// Is there no point, whatever the parameters? The witness is a point with its parameters, the lexicographically
  /// least (parameters first) where there is one.
  Answer is_empty() const;
  /// Is every point one of `other`, which has a tuple of the same length? The witness is a point that is not.
  Answer is_subset_of(const IntegerSet& other) const;
  /// The condition on the tuple under which a point of `within` is none of this set's, in the cheapest form that is
  /// found: over the tuple's variables, of at most `limit` operators, and read back it is that set. A variable of a
  /// data type stands for its value as an integer. Nothing when there is no such form, when a set has parameters or is
  /// inexact, or over the budget.
  std::optional<Expr> condition_outside(const IntegerSet& within, int limit) const;
  /// The values that the variables `kept` of the tuple take.
  IntegerSet projected(const std::vector<VarRef>& kept) const;

 private:
  struct Data;
  explicit IntegerSet(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  std::shared_ptr<const Data> data_;
};

/// From now on, in all threads: is every condition that is made of a set also compared with it at points of a small
/// box? A difference is an InternalError. For tests.
void sample_conditions(bool on);

/// { tuple -> image : condition }; parameters, locals and exactness as for sets.
class IntegerRelation {
 public:
  IntegerRelation(const ExactEngine& engine, std::vector<VarRef> tuple, const std::vector<Expr>& image,
                  const Expr& condition, std::vector<VarRef> locals = {}, const Translation& translation = {});

  /// Do different tuples never share an image? The witnesses are two tuples that do.
  Answer is_injective() const;
  /// Are the two relations, of equal arities, the same? The witness is a tuple with an image of only one of them.
  Answer is_equal(const IntegerRelation& other) const;
  /// In isl's notation, with a name for each entry of the tuple and of the image; nothing over the budget.
  std::optional<std::string> text(const std::vector<std::string>& tuple_names,
                                  const std::vector<std::string>& image_names) const;

 private:
  struct Data;
  std::shared_ptr<const Data> data_;
};

}  // namespace helve
