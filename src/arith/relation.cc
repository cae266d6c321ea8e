// Relations by isl, and the queries about them.
// A query runs within one budget; a superset answers only what also holds of its subsets.
#include "helve/arith/relation.h"

#include "isl_points.h"
#include "isl_problem.h"

namespace helve {

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::Proved: return "proved";
    case Verdict::Refuted: return "refuted";
    case Verdict::Unknown: return "unknown";
  }
  __builtin_unreachable();
}

std::optional<int64_t> value_in(const Witness& witness, const Var* var) {
  for (const auto& [known, value] : witness) {
    if (known.get() == var) return value;
  }
  return std::nullopt;
}

IntegerRelation::IntegerRelation(const ExactEngine& engine, std::vector<VarRef> tuple, const std::vector<Expr>& image,
                                 const Expr& condition, std::vector<VarRef> locals, const Translation& translation) {
  Problem problem(engine, std::move(tuple), condition, image, locals, translation);
  std::optional<isl::map> map;
  if (problem.domain) {
    const bool done = within_budget(engine.state(), [&] {
      const unsigned arity = static_cast<unsigned>(problem.tuple.size());
      isl_map* all = isl_map_from_range(projected_from(*problem.domain, arity + image.size()).release());
      map = isl::manage(isl_map_move_dims(all, isl_dim_in, 0, isl_dim_out, 0, arity));
    });
    if (!done) map.reset();
  }
  data_ =
      std::make_shared<Data>(Data{engine.state(), problem.tuple, problem.image, problem.params, problem.inexact, map});
}

std::optional<std::string> IntegerRelation::text(const std::vector<std::string>& tuple_names,
                                                 const std::vector<std::string>& image_names) const {
  if (!data_->map) return std::nullopt;
  std::string text;
  const bool done = within_budget(data_->engine, [&] {
    isl_map* map = isl_map_copy(data_->map->get());
    unsigned at = 0;
    for (const std::string& name : tuple_names) map = isl_map_set_dim_name(map, isl_dim_in, at++, name.c_str());
    at = 0;
    for (const std::string& name : image_names) map = isl_map_set_dim_name(map, isl_dim_out, at++, name.c_str());
    char* made = isl_map_to_str(map);
    isl_map_free(map);
    text = made;
    free(made);
  });
  if (!done) return std::nullopt;
  return text;
}

const std::vector<VarRef>& IntegerRelation::tuple() const { return data_->tuple; }
const std::vector<VarRef>& IntegerRelation::image() const { return data_->image; }
const std::string& IntegerRelation::inexact() const { return data_->inexact; }

namespace {

/// The first tuple of a relation that is not empty, and its image.
Answer refuted_by(const isl::map& map, const IntegerRelation::Data& of, const std::vector<VarRef>& more_params = {}) {
  const isl::set pairs = map.wrap().flatten();
  const std::vector<VarRef> params = params_of(pairs, of.params, more_params);
  const isl::point point = a_point(with_params_first(pairs));
  Answer answer;
  answer.witness = witness_of(point, params, of.tuple);
  answer.other = witness_of(point, params, of.image, of.tuple.size());
  answer.verdict = Verdict::Refuted;
  return answer;
}

}  // namespace

Answer IntegerRelation::is_empty() const {
  const Data& d = *data_;
  if (!d.map) return unknown_because(kOverBudget);
  return whether_empty(
      d.engine, {}, d.inexact, [&] { return *d.map; }, [&](const isl::map& left) { return refuted_by(left, d); });
}

Answer IntegerRelation::is_subset_of(const IntegerRelation& other) const {
  const Data &a = *data_, &b = *other.data_;
  if (!a.map || !b.map) return unknown_because(kOverBudget);
  check_comparable(a, b);
  return whether_empty(
      a.engine, b.inexact, a.inexact, [&] { return a.map->subtract(*b.map); },
      [&](const isl::map& left) { return refuted_by(left, a, b.params); });
}

Answer IntegerRelation::is_injective() const {
  const Data& d = *data_;
  if (!d.map) return unknown_because(kOverBudget);
  const auto different = [&] {
    if (d.map->is_injective()) return isl::map::empty(d.map->space());  // without the pairs, which cost more
    const isl::map pairs = d.map->apply_range(d.map->reverse());
    return pairs.subtract(pairs.domain().identity());
  };
  return whether_empty(d.engine, {}, d.inexact, different, [&](const isl::map& left) {
    return refuted_by(left, Data{d.engine, d.tuple, d.tuple, d.params, {}, {}});
  });
}

Answer IntegerRelation::is_equal(const IntegerRelation& other) const {
  const Data &a = *data_, &b = *other.data_;
  if (!a.map || !b.map) return unknown_because(kOverBudget);
  check_comparable(a, b);
  if (!a.inexact.empty() || !b.inexact.empty()) return unknown_because(a.inexact.empty() ? b.inexact : a.inexact);
  Answer answer;
  const bool done = within_budget(a.engine, [&] {
    const isl::map rest = a.map->subtract(*b.map).unite(b.map->subtract(*a.map));
    if (rest.is_empty()) {
      answer.verdict = Verdict::Proved;
    } else {
      const isl::set where = rest.domain();
      answer.witness = witness_of(a_point(with_params_first(where)), params_of(where, a.params, b.params), a.tuple);
      answer.verdict = Verdict::Refuted;
    }
  });
  return done ? answer : unknown_because(kOverBudget);
}

}  // namespace helve
