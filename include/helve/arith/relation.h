// Sets and relations of integer tuples, and exact queries about them.
// The bridge to isl: what interval arithmetic cannot decide (races, bounds under guards, equality of maps) is decided
// here, within a budget of operations; tests use it as an oracle for faster paths. Operations on sets and relations are
// in relation_algebra.h, their bounds as expressions in set_bounds.h.
#pragma once

#include <cstdint>
#include <functional>
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

/// The reason of an unknown result that a larger budget might decide.
inline constexpr std::string_view kOverBudget = "over the budget of operations";

/// The result of an exact query. Refuted comes with a witness, unknown with a reason.
struct Answer {
  Verdict verdict = Verdict::Unknown;
  Witness witness;
  Witness other;  ///< the second tuple, or the image of the first, if two of them refute
  std::string reason;
};

/// The isl operations of one query (a few tens of milliseconds).
inline constexpr int64_t kOperationLimit = 100'000;

/// The context of sets and relations; one for each compile, used by one thread at a time. Copies share the engine.
class ExactEngine {
 public:
  explicit ExactEngine(int64_t operation_limit = kOperationLimit);

  struct State;
  explicit ExactEngine(std::shared_ptr<State> state) : state_(std::move(state)) {}
  const std::shared_ptr<State>& state() const { return state_; }

 private:
  std::shared_ptr<State> state_;
};

/// What the translation of expressions may use in addition.
struct Translation {
  /// Ranges, under which a conversion to a data integer keeps its value: asked for where there is one.
  std::function<const Facts&()> facts = {};
  const std::unordered_set<const Storage*>* constant = nullptr;  ///< storages whose contents do not change
};

/// The largest parts of an index expression or a condition that are any value in a set, in order, equal ones once: what
/// stands between them is exact. Empty if the expression is exact.
std::vector<Expr> inexact_parts(const Expr& e, const Translation& translation = {});

/// { tuple : condition }. Variables of the condition outside the tuple and the locals are parameters; locals are
/// quantified existentially.
///
/// Affine expressions, // and % by constants, min, max, abs, selections, shifts and masks by constants, comparisons and
/// connectives are exact. Any other part (a product of variables, a load) is an unknown value: the set is then a
/// superset, so that emptiness can be proved but not refuted.
class IntegerSet {
 public:
  IntegerSet(const ExactEngine& engine, std::vector<VarRef> tuple, const Expr& condition,
             std::vector<VarRef> locals = {}, const Translation& translation = {});

  const std::vector<VarRef>& tuple() const;
  /// Why the set is a superset; empty if it is exact.
  const std::string& inexact() const;

  /// Is the set empty for all parameters? The witness is a point with its parameters, the lexicographically smallest
  /// (parameters first) if there is one.
  Answer is_empty() const;
  /// The same without a witness, which may cost more than the answer.
  Answer emptiness() const;
  /// Is the set a subset of `other`, which has a tuple of the same length? The witness is a point that is not in it.
  Answer is_subset_of(const IntegerSet& other) const;
  /// The condition on the tuple under which a point of `within` is not in this set, in the cheapest form that is found:
  /// over the tuple's variables, with at most `limit` operators, and verified to describe exactly that set. A variable
  /// of a data type represents its value as an integer. Nothing if there is no such form, if a set has parameters or is
  /// inexact, or over the budget.
  std::optional<Expr> condition_outside(const IntegerSet& within, int limit) const;
  /// The values that the variables `kept` of the tuple take.
  IntegerSet projected(const std::vector<VarRef>& kept) const;

  struct Data;
  explicit IntegerSet(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  const Data& data() const { return *data_; }

 private:
  std::shared_ptr<const Data> data_;
};

/// Enables, in all threads, a comparison of every condition made from a set with the set at points of a small box. A
/// difference is an InternalError. For tests.
void sample_conditions(bool on);

/// { tuple -> image : condition }; parameters, locals and exactness as for sets.
class IntegerRelation {
 public:
  IntegerRelation(const ExactEngine& engine, std::vector<VarRef> tuple, const std::vector<Expr>& image,
                  const Expr& condition, std::vector<VarRef> locals = {}, const Translation& translation = {});

  const std::vector<VarRef>& tuple() const;
  /// A variable for each entry of the image.
  const std::vector<VarRef>& image() const;
  /// Why the relation is a superset; empty if it is exact.
  const std::string& inexact() const;

  /// Is the relation empty for all parameters? The witnesses are a tuple and its image, the smallest as for sets.
  Answer is_empty() const;
  /// Is the relation a subset of `other`, of equal arities? The witnesses are a tuple and an image that it has not
  /// there.
  Answer is_subset_of(const IntegerRelation& other) const;
  /// Do different tuples always have different images? The witnesses are two tuples that share one.
  Answer is_injective() const;
  /// Are the two relations, of equal arities, the same? The witness is a tuple with an image in only one of them.
  Answer is_equal(const IntegerRelation& other) const;
  /// In isl's notation, with a name for each entry of the tuple and of the image; nothing over the budget.
  std::optional<std::string> text(const std::vector<std::string>& tuple_names,
                                  const std::vector<std::string>& image_names) const;

  struct Data;
  explicit IntegerRelation(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
  const Data& data() const { return *data_; }

 private:
  std::shared_ptr<const Data> data_;
};

}  // namespace helve
