// The lexicographic order and its extremes by isl.
// isl is asked for an extreme only where its search ends.
#include "helve/arith/lexicographic.h"

#include "isl_points.h"

namespace helve {

namespace {

IntegerRelation order(const ExactEngine& engine, std::vector<VarRef> a, std::vector<VarRef> b,
                      isl_map* (*order_of)(isl_space*)) {
  HELVE_CHECK(a.size() == b.size(), "an order of tuples of different lengths");
  const auto length = static_cast<unsigned>(a.size());
  auto out = std::make_shared<IntegerRelation::Data>();
  out->engine = engine.state();
  out->tuple = std::move(a);
  out->image = std::move(b);
  if (!within_budget(out->engine,
                     [&] { out->map = isl::manage(order_of(isl_space_set_alloc(out->engine->context, 0, length))); })) {
    out->map.reset();
  }
  return IntegerRelation(std::move(out));
}

/// Do the tuples have bounded sets of images, for given parameters? isl's search for an extreme of others need not end,
/// whatever its budget, which counts no pivots.
bool has_bounded_images(const isl::map& map) {
  const auto tuple = static_cast<unsigned>(isl_map_dim(map.get(), isl_dim_in));
  const auto params = static_cast<unsigned>(isl_map_dim(map.get(), isl_dim_param));
  const isl::set images =
      isl::manage(isl_map_range(isl_map_move_dims(map.copy(), isl_dim_param, params, isl_dim_in, 0, tuple)));
  const isl_bool bounded = isl_set_is_bounded(images.get());
  if (bounded == isl_bool_error) isl::exception::throw_last_error(map.ctx());
  return bounded == isl_bool_true;
}

template <class F>
IntegerRelation extremes(const IntegerRelation& relation, F&& extremes_of) {
  const IntegerRelation::Data& r = relation.data();
  if (!r.map || !r.inexact.empty()) return relation;
  auto out = std::make_shared<IntegerRelation::Data>(r);
  const bool done = within_budget(r.engine, [&] {
    if (has_bounded_images(*r.map)) {
      out->map = extremes_of(*r.map);
    } else {
      out->inexact = kUnboundedImages;
    }
  });
  if (!done) out->map.reset();
  return IntegerRelation(std::move(out));
}

}  // namespace

IntegerRelation before(const ExactEngine& engine, std::vector<VarRef> a, std::vector<VarRef> b) {
  return order(engine, std::move(a), std::move(b), isl_map_lex_lt);
}

IntegerRelation before_or_same(const ExactEngine& engine, std::vector<VarRef> a, std::vector<VarRef> b) {
  return order(engine, std::move(a), std::move(b), isl_map_lex_le);
}

IntegerRelation least_images(const IntegerRelation& relation) {
  return extremes(relation, [](const isl::map& map) { return map.lexmin(); });
}

IntegerRelation greatest_images(const IntegerRelation& relation) {
  return extremes(relation, [](const isl::map& map) { return map.lexmax(); });
}

}  // namespace helve
