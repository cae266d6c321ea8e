// Points of isl's sets as values of variables.
// A refuted query names the point that refutes it.
#include "isl_points.h"

#include "isl_translator.h"

namespace helve {

namespace {

int64_t integer(isl_val* value) {
  const int64_t out = isl_val_get_num_si(value);
  isl_val_free(value);
  return out;
}

}  // namespace

isl::set IntegerSet::Data::points() const { return projected_from(*set, tuple.size()); }

void check_comparable(const IntegerSet::Data& a, const IntegerSet::Data& b) {
  HELVE_CHECK(a.engine == b.engine, "sets of different engines");
  HELVE_CHECK(a.tuple.size() == b.tuple.size(), "sets of tuples of different lengths");
}

void check_comparable(const IntegerRelation::Data& a, const IntegerRelation::Data& b) {
  HELVE_CHECK(a.engine == b.engine, "relations of different engines");
  HELVE_CHECK(a.tuple.size() == b.tuple.size() && a.image.size() == b.image.size(), "relations of different arities");
}

isl::point a_point(const isl::set& set) {
  if (isl_set_is_bounded(set.get()) == isl_bool_true) return set.lexmin().sample_point();
  isl::set rest = set;
  const unsigned count = static_cast<unsigned>(isl_set_dim(set.get(), isl_dim_set));
  for (unsigned d = 0; d < count; ++d) {
    const isl::val least = rest.dim_min_val(static_cast<int>(d));
    if (!least.is_int()) return rest.sample_point();  // unbounded below
    const isl::set at_least = isl::manage(isl_set_fix_val(rest.copy(), isl_dim_set, d, least.copy()));
    if (at_least.is_empty()) return rest.sample_point();
    rest = at_least;
  }
  return rest.sample_point();
}

Witness witness_of(const isl::point& point, const std::vector<VarRef>& params, const std::vector<VarRef>& dims,
                   size_t from) {
  Witness out;
  for (size_t i = 0; i < params.size(); ++i) {
    const unsigned at = static_cast<unsigned>(i);
    out.emplace_back(params[i], integer(isl_point_get_coordinate_val(point.get(), isl_dim_set, static_cast<int>(at))));
  }
  for (size_t i = 0; i < dims.size(); ++i) {
    const int at = static_cast<int>(params.size() + from + i);
    out.emplace_back(dims[i], integer(isl_point_get_coordinate_val(point.get(), isl_dim_set, at)));
  }
  return out;
}

isl::set with_params_first(const isl::set& set) {
  isl_set* moved = set.copy();
  const unsigned count = static_cast<unsigned>(isl_set_dim(moved, isl_dim_param));
  return isl::manage(isl_set_move_dims(moved, isl_dim_set, 0, isl_dim_param, 0, count));
}

std::vector<VarRef> params_of(const isl::set& set, const std::vector<VarRef>& a, const std::vector<VarRef>& b) {
  std::vector<VarRef> out;
  const unsigned count = static_cast<unsigned>(isl_set_dim(set.get(), isl_dim_param));
  for (unsigned i = 0; i < count; ++i) {
    const std::string name = isl_set_get_dim_name(set.get(), isl_dim_param, i);
    for (const std::vector<VarRef>* vars : {&a, &b}) {
      for (const VarRef& var : *vars) {
        if (out.size() == i && parameter_name(var) == name) out.push_back(var);
      }
    }
    HELVE_CHECK(out.size() == i + 1, "a parameter of another query");
  }
  return out;
}

Answer unknown_because(std::string_view reason) { return {Verdict::Unknown, {}, {}, std::string(reason)}; }

isl::set projected_from(const isl::set& set, size_t first) {
  isl_set* out = set.copy();
  const unsigned count = static_cast<unsigned>(isl_set_dim(out, isl_dim_set));
  return isl::manage(
      isl_set_project_out(out, isl_dim_set, static_cast<unsigned>(first), count - static_cast<unsigned>(first)));
}

}  // namespace helve
