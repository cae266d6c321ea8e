// Sets and relations as isl holds them, and their points as witnesses.
// The other files of the bridge know a set by these.
#pragma once

#include <isl/cpp.h>

#include <optional>
#include <string>
#include <vector>

#include "isl_engine.h"

namespace helve {

struct IntegerSet::Data {
  Engine engine;
  std::vector<VarRef> tuple;
  std::vector<VarRef> params;  ///< those of isl's set, and possibly others
  std::string inexact;
  std::optional<isl::set> set;  ///< over the tuple, then what is existentially quantified; nothing over the budget

  /// The set without what is quantified. To be called within the budget, of a set that is within it.
  isl::set points() const;
};

struct IntegerRelation::Data {
  Engine engine;
  std::vector<VarRef> tuple;
  std::vector<VarRef> image;
  std::vector<VarRef> params;  ///< those of isl's map, and possibly others
  std::string inexact;
  std::optional<isl::map> map;  ///< nothing over the budget
};

/// Fails on operands of different engines or arities.
void check_comparable(const IntegerSet::Data& a, const IntegerSet::Data& b);
void check_comparable(const IntegerRelation::Data& a, const IntegerRelation::Data& b);

Answer unknown_because(std::string_view reason);

/// Is nothing left? Points that `left` has too few, or too many, make the one answer or the other unknown, for that
/// reason; `refuted` makes the witness of what is left.
template <class Left, class Refuted>
Answer whether_empty(const Engine& engine, const std::string& too_few, const std::string& too_many, Left&& left,
                     Refuted&& refuted) {
  Answer answer;
  const bool done = within_budget(engine, [&] {
    const auto rest = left();
    if (rest.is_empty()) {
      answer.reason = too_few;
      if (too_few.empty()) answer.verdict = Verdict::Proved;
    } else if (!too_many.empty()) {
      answer.reason = too_many;
    } else {
      answer = refuted(rest);
    }
  });
  return done ? answer : unknown_because(kOverBudget);
}

/// The set without its dimensions from `first` on.
isl::set projected_from(const isl::set& set, size_t first);
/// The set with its parameters as first dimensions.
isl::set with_params_first(const isl::set& set);
/// The parameters of a set as variables, by the names that the translator gave them.
std::vector<VarRef> params_of(const isl::set& set, const std::vector<VarRef>& a, const std::vector<VarRef>& b = {});

/// The lexicographically least point of a bounded set. Of another one a point that is as small, one dimension after the
/// other, as isl finds it: its search for the least point need not end there, whatever its budget, which counts no
/// pivots, and the least value that it gives for a dimension may be too small. The set is not empty.
isl::point a_point(const isl::set& set);
/// The coordinates of a point whose parameters stand before its dimensions, of which those from `from` on are `dims`.
Witness witness_of(const isl::point& point, const std::vector<VarRef>& params, const std::vector<VarRef>& dims,
                   size_t from = 0);

}  // namespace helve
