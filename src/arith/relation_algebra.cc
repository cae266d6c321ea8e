// The algebra by isl.
// Exactness is bookkeeping of its own, separate from isl, which never sees that an operand is a superset.
#include "helve/arith/relation_algebra.h"

#include "isl_points.h"

namespace helve {

namespace {

/// What an operation on `a` and `b` makes: the parts of the result that do not depend on isl.
template <class Result, class A, class B>
std::shared_ptr<Result> result_of(const A& a, const B& b) {
  HELVE_CHECK(a.engine == b.engine, "sets or relations of different engines");
  std::shared_ptr<Result> out = std::make_shared<Result>();
  out->engine = a.engine;
  out->params = a.params;
  std::unordered_set<const Var*> known;
  for (const VarRef& var : a.params) known.insert(var.get());
  for (const VarRef& var : b.params) {
    if (known.insert(var.get()).second) out->params.push_back(var);
  }
  out->inexact = a.inexact.empty() ? b.inexact : a.inexact;
  return out;
}

/// The set that `f` makes of two operands within the budget.
template <class A, class B, class F>
IntegerSet set_of(const A& a, const B& b, std::vector<VarRef> tuple, F&& f) {
  auto out = result_of<IntegerSet::Data>(a, b);
  out->tuple = std::move(tuple);
  if (!within_budget(out->engine, [&] { out->set = f(); })) out->set.reset();
  return IntegerSet(std::move(out));
}

/// The relation that `f` makes of two operands within the budget.
template <class A, class B, class F>
IntegerRelation relation_by(const A& a, const B& b, std::vector<VarRef> tuple, std::vector<VarRef> image, F&& f) {
  auto out = result_of<IntegerRelation::Data>(a, b);
  out->tuple = std::move(tuple);
  out->image = std::move(image);
  if (!within_budget(out->engine, [&] { out->map = f(); })) out->map.reset();
  return IntegerRelation(std::move(out));
}

using MaybeSet = std::optional<isl::set>;
using MaybeMap = std::optional<isl::map>;

/// An operation on two sets of tuples of equal lengths.
template <class F>
IntegerSet on_points(const IntegerSet& first, const IntegerSet& second, F&& f) {
  const IntegerSet::Data &a = first.data(), &b = second.data();
  check_comparable(a, b);
  return set_of(a, b, a.tuple, [&] { return a.set && b.set ? MaybeSet(f(a.points(), b.points())) : MaybeSet(); });
}

/// An operation on two relations of equal arities.
template <class F>
IntegerRelation on_pairs(const IntegerRelation& first, const IntegerRelation& second, F&& f) {
  const IntegerRelation::Data &a = first.data(), &b = second.data();
  check_comparable(a, b);
  return relation_by(a, b, a.tuple, a.image, [&] { return a.map && b.map ? MaybeMap(f(*a.map, *b.map)) : MaybeMap(); });
}

}  // namespace

IntegerSet union_of(const IntegerSet& a, const IntegerSet& b) {
  return on_points(a, b, [](const isl::set& p, const isl::set& q) { return p.unite(q); });
}

IntegerSet intersection_of(const IntegerSet& a, const IntegerSet& b) {
  return on_points(a, b, [](const isl::set& p, const isl::set& q) { return p.intersect(q); });
}

IntegerSet difference_of(const IntegerSet& a, const IntegerSet& b) {
  const bool keep = !b.inexact().empty();  // a point of a superset of `b` need not be one of `b`
  return on_points(a, b, [&](const isl::set& p, const isl::set& q) { return keep ? p : p.subtract(q); });
}

IntegerRelation union_of(const IntegerRelation& a, const IntegerRelation& b) {
  return on_pairs(a, b, [](const isl::map& p, const isl::map& q) { return p.unite(q); });
}

IntegerRelation intersection_of(const IntegerRelation& a, const IntegerRelation& b) {
  return on_pairs(a, b, [](const isl::map& p, const isl::map& q) { return p.intersect(q); });
}

IntegerRelation difference_of(const IntegerRelation& a, const IntegerRelation& b) {
  const bool keep = !b.inexact().empty();
  return on_pairs(a, b, [&](const isl::map& p, const isl::map& q) { return keep ? p : p.subtract(q); });
}

IntegerRelation inverse_of(const IntegerRelation& relation) {
  const IntegerRelation::Data& r = relation.data();
  return relation_by(r, r, r.image, r.tuple, [&] { return r.map ? MaybeMap(r.map->reverse()) : MaybeMap(); });
}

IntegerRelation composition_of(const IntegerRelation& first, const IntegerRelation& second) {
  const IntegerRelation::Data &a = first.data(), &b = second.data();
  HELVE_CHECK(a.image.size() == b.tuple.size(), "a composition of relations that do not meet");
  return relation_by(a, b, a.tuple, b.image,
                     [&] { return a.map && b.map ? MaybeMap(a.map->apply_range(*b.map)) : MaybeMap(); });
}

IntegerSet domain_of(const IntegerRelation& relation) {
  const IntegerRelation::Data& r = relation.data();
  return set_of(r, r, r.tuple, [&] { return r.map ? MaybeSet(r.map->domain()) : MaybeSet(); });
}

IntegerSet range_of(const IntegerRelation& relation) {
  const IntegerRelation::Data& r = relation.data();
  return set_of(r, r, r.image, [&] { return r.map ? MaybeSet(r.map->range()) : MaybeSet(); });
}

IntegerRelation with_domain_in(const IntegerRelation& relation, const IntegerSet& set) {
  const IntegerRelation::Data& r = relation.data();
  const IntegerSet::Data& s = set.data();
  HELVE_CHECK(s.tuple.size() == r.tuple.size(), "a set of tuples that are not those of the relation");
  return relation_by(r, s, r.tuple, r.image,
                     [&] { return r.map && s.set ? MaybeMap(r.map->intersect_domain(s.points())) : MaybeMap(); });
}

IntegerRelation with_range_in(const IntegerRelation& relation, const IntegerSet& set) {
  const IntegerRelation::Data& r = relation.data();
  const IntegerSet::Data& s = set.data();
  HELVE_CHECK(s.tuple.size() == r.image.size(), "a set of tuples that are not images of the relation");
  return relation_by(r, s, r.tuple, r.image,
                     [&] { return r.map && s.set ? MaybeMap(r.map->intersect_range(s.points())) : MaybeMap(); });
}

IntegerSet image_of(const IntegerSet& set, const IntegerRelation& relation) {
  return range_of(with_domain_in(relation, set));
}

IntegerSet pairs_of(const IntegerRelation& relation) {
  const IntegerRelation::Data& r = relation.data();
  std::vector<VarRef> tuple = r.tuple;
  tuple.insert(tuple.end(), r.image.begin(), r.image.end());
  return set_of(r, r, std::move(tuple), [&] { return r.map ? MaybeSet(r.map->wrap().flatten()) : MaybeSet(); });
}

IntegerRelation relation_of(const IntegerSet& pairs, size_t arity) {
  const IntegerSet::Data& s = pairs.data();
  HELVE_CHECK(arity <= s.tuple.size(), "a relation of more entries than its pairs have");
  const auto middle = s.tuple.begin() + static_cast<int64_t>(arity);
  const auto made = [&]() -> MaybeMap {
    if (!s.set) return {};
    isl_map* map = isl_map_from_range(s.points().release());
    return isl::manage(isl_map_move_dims(map, isl_dim_in, 0, isl_dim_out, 0, static_cast<unsigned>(arity)));
  };
  return relation_by(s, s, {s.tuple.begin(), middle}, {middle, s.tuple.end()}, made);
}

IntegerSet as_superset(const IntegerSet& set, const std::string& reason) {
  auto out = std::make_shared<IntegerSet::Data>(set.data());
  if (out->inexact.empty()) out->inexact = reason;
  return IntegerSet(std::move(out));
}

IntegerSet renamed(const IntegerSet& set, std::vector<VarRef> tuple) {
  const IntegerSet::Data& s = set.data();
  HELVE_CHECK(s.tuple.size() == tuple.size(), "as many names as entries");
  return set_of(s, s, std::move(tuple), [&] { return s.set; });
}

}  // namespace helve
