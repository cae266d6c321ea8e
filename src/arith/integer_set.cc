// Sets by isl, and the queries about them.
// A query runs within one budget; a superset answers only what also holds of its subsets.
#include <algorithm>

#include "helve/arith/relation.h"
#include "isl_points.h"
#include "isl_problem.h"

namespace helve {

namespace {

/// The set with dimension `from` at the earlier place `to`.
isl::set moved_dimension(const isl::set& set, size_t from, size_t to) {
  if (from == to) return set;
  // isl moves between kinds of dimensions only, so the way is by a parameter.
  isl_set* out = set.copy();
  const unsigned param = static_cast<unsigned>(isl_set_dim(out, isl_dim_param));
  out = isl_set_move_dims(out, isl_dim_param, param, isl_dim_set, static_cast<unsigned>(from), 1);
  out = isl_set_move_dims(out, isl_dim_set, static_cast<unsigned>(to), isl_dim_param, param, 1);
  return isl::manage(out);
}

}  // namespace

IntegerSet::IntegerSet(const ExactEngine& engine, std::vector<VarRef> tuple, const Expr& condition,
                       std::vector<VarRef> locals, const Translation& translation) {
  Problem problem(engine, std::move(tuple), condition, {}, locals, translation);
  data_ = std::make_shared<Data>(Data{engine.state(), problem.tuple, problem.params, problem.inexact, problem.domain});
}

namespace {

/// A point of a set that is not empty.
Answer a_point_of(const isl::set& set, const IntegerSet::Data& of, const std::vector<VarRef>& more_params = {}) {
  Answer answer;
  answer.witness = witness_of(a_point(with_params_first(set)), params_of(set, of.params, more_params), of.tuple);
  answer.verdict = Verdict::Refuted;
  return answer;
}

}  // namespace

const std::vector<VarRef>& IntegerSet::tuple() const { return data_->tuple; }
const std::string& IntegerSet::inexact() const { return data_->inexact; }

Answer IntegerSet::is_empty() const {
  const Data& a = *data_;
  if (!a.set) return unknown_because(kOverBudget);
  return whether_empty(
      a.engine, {}, a.inexact, [&] { return *a.set; }, [&](const isl::set& left) { return a_point_of(left, a); });
}

Answer IntegerSet::emptiness() const {
  const Data& a = *data_;
  if (!a.set) return unknown_because(kOverBudget);
  return whether_empty(
      a.engine, {}, a.inexact, [&] { return *a.set; },
      [](const isl::set&) { return Answer{Verdict::Refuted, {}, {}, {}}; });
}

Answer IntegerSet::is_subset_of(const IntegerSet& other) const {
  const Data &a = *data_, &b = *other.data_;
  if (!a.set || !b.set) return unknown_because(kOverBudget);
  check_comparable(a, b);
  return whether_empty(
      a.engine, b.inexact, a.inexact, [&] { return a.points().subtract(b.points()); },
      [&](const isl::set& left) { return a_point_of(left, a, b.params); });
}

IntegerSet IntegerSet::projected(const std::vector<VarRef>& kept) const {
  std::shared_ptr<Data> out = std::make_shared<Data>(*data_);
  out->tuple = kept;
  if (!data_->set) return IntegerSet(out);
  const bool done = within_budget(data_->engine, [&] {
    isl::set set = data_->points();
    // The kept dimensions move to the front, in their order, then the rest is dropped.
    std::vector<VarRef> order = data_->tuple;
    for (size_t i = 0; i < kept.size(); ++i) {
      const auto at = std::find(order.begin(), order.end(), kept[i]);
      HELVE_CHECK(at != order.end(), "a projection to a variable that is not in the tuple");
      const size_t from = static_cast<size_t>(at - order.begin());
      set = moved_dimension(set, from, i);
      order.erase(at);
      order.insert(order.begin() + static_cast<int64_t>(i), kept[i]);
    }
    out->set = projected_from(set, kept.size());
  });
  if (!done) out->set.reset();
  return IntegerSet(out);
}

}  // namespace helve
