// Layouts as relations, written down from the definition.
// The digits of the index are // and % of the flat index, a replica is a bounded local, a bit of a swizzle is (a + b)
// % 2.
#include "helve/layout/to_relation.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "helve/ir/expr/build.h"

#include "integers.h"

namespace helve {

namespace {

Expr flat_index(const std::vector<VarRef>& coordinate, const std::vector<int64_t>& shape) {
  Expr flat = int_imm(0);
  for (size_t d = 0; d < shape.size(); ++d) flat = flat * int_imm(shape[d]) + Expr(coordinate[d]);
  return flat;
}

Expr bit(const Expr& value, int place) { return floor_mod(floor_div(value, int_imm(int64_t{1} << place)), int_imm(2)); }

Expr swizzled(const Swizzle& swizzle, const Expr& address) {
  Expr out = address;
  for (int k = 0; k < swizzle.bits; ++k) {
    const int from = swizzle.base + k + std::max(swizzle.shift, 0);
    const int to = swizzle.base + k + std::max(-swizzle.shift, 0);
    const Expr old = bit(address, to);
    out = out + (floor_mod(old + bit(address, from), int_imm(2)) - old) * int_imm(int64_t{1} << to);
  }
  return out;
}

void require_range(Expr& condition, const VarRef& var, int64_t extent) {
  condition = logical_and(condition, apply(Op::Le, {int_imm(0), Expr(var)}));
  condition = logical_and(condition, less(Expr(var), int_imm(extent)));
}

}  // namespace

IntegerRelation to_relation(const ExactEngine& engine, const Layout& layout, const std::vector<int64_t>& shape,
                            const Axes& axes) {
  layout_detail::check_admitted(layout, shape);
  Expr condition = bool_imm(true);
  std::vector<VarRef> coordinate, replicas;
  for (int64_t extent : shape) {
    coordinate.push_back(make_var("x"));
    require_range(condition, coordinate.back(), extent);
  }
  std::map<Axis, Expr> places;
  for (const Axis& axis : axes) places[axis] = int_imm(layout.offset(axis));
  auto add = [&](const Iter& iter, const Expr& digit) {
    auto it = places.find(iter.axis);
    if (it != places.end()) it->second = it->second + digit * int_imm(iter.stride);
  };
  Expr rest = flat_index(coordinate, shape);
  for (size_t k = layout.shard().size(); k-- > 0;) {
    const Iter& iter = layout.shard()[k];
    add(iter, floor_mod(rest, int_imm(iter.extent)));
    rest = floor_div(rest, int_imm(iter.extent));
  }
  for (const Iter& iter : layout.replica()) {
    replicas.push_back(make_var("r"));
    require_range(condition, replicas.back(), iter.extent);
    add(iter, Expr(replicas.back()));
  }
  std::vector<Expr> image;
  for (const Axis& axis : axes) {
    image.push_back(axis == axes::m() ? swizzled(layout.swizzle(), places[axis]) : places[axis]);
  }
  return IntegerRelation(engine, coordinate, image, condition, replicas);
}

IntegerRelation to_relation(const ExactEngine& engine, const Layout& layout, const std::vector<int64_t>& shape) {
  return to_relation(engine, layout, shape, layout.axes());
}

namespace {

/// The name of an axis as an identifier of isl: one that isl reads as something else gets an underscore.
std::string isl_name(Axis axis) {
  constexpr std::string_view kReserved[] = {"and",     "ceil",     "ceild", "exists", "false", "floor", "floord",
                                            "implies", "infinity", "infty", "max",    "min",   "mod",   "nan",
                                            "NaN",     "not",      "or",    "rat",    "true"};
  const bool reserved = std::find(std::begin(kReserved), std::end(kReserved), axis.name()) != std::end(kReserved);
  return axis.name() + (reserved ? "_" : "");
}

}  // namespace

std::string relation_text(const Layout& layout, const std::vector<int64_t>& shape) {
  std::vector<std::string> coordinates, places;
  for (size_t d = 0; d < shape.size(); ++d) coordinates.push_back(fmt::format("x{}", d));
  for (Axis axis : layout.axes()) places.push_back(isl_name(axis));
  const ExactEngine engine(kLayoutStepLimit);
  std::optional<std::string> text = to_relation(engine, layout, shape).text(coordinates, places);
  if (!text) layout_detail::StepCounter("the relation", layout).step(kLayoutStepLimit + 1);
  return *text;
}

}  // namespace helve
