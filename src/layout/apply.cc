// The map and its inverse, and whether it is injective.
// Axes are independent of each other: a relation between digits holds when it holds on each axis.
#include <algorithm>

#include "helve/layout/layout.h"
#include "helve/layout/notation.h"
#include "helve/support/text.h"
#include "integers.h"
#include "relation.h"

namespace helve {

using layout_detail::solve_relation;
using layout_detail::StepCounter;
using layout_detail::Term;

namespace {

size_t axis_position(const Layout& layout, Axis axis) {
  const std::vector<Axis>& all = layout.axes();
  return static_cast<size_t>(std::lower_bound(all.begin(), all.end(), axis) - all.begin());
}

/// The digits of an index, one for each shard iter.
std::vector<int64_t> shard_digits(const Layout& layout, int64_t index) {
  std::vector<int64_t> digits(layout.shard().size());
  for (size_t k = digits.size(); k-- > 0;) {
    digits[k] = index % layout.shard()[k].extent;
    index /= layout.shard()[k].extent;
  }
  return digits;
}

int64_t shard_index(const Layout& layout, const std::vector<int64_t>& digits) {
  int64_t index = 0;
  for (size_t k = 0; k < digits.size(); ++k) index = index * layout.shard()[k].extent + digits[k];
  return index;
}

using Coordinates = std::vector<int64_t>;  // one entry for each of layout.axes()

void sort_unique(std::vector<Coordinates>& points) {
  std::sort(points.begin(), points.end());
  points.erase(std::unique(points.begin(), points.end()), points.end());
}

}  // namespace

std::vector<Point> Layout::apply(int64_t index) const {
  if (index < 0 || index >= size()) {
    throw_layout_error(Code::CoordinateBounds, {{"coordinate", shape_text(std::vector{index})}, {"shape", shape_text(std::vector{size()})}});
  }
  Coordinates origin(axes().size());
  for (size_t a = 0; a < origin.size(); ++a) origin[a] = offset(axes()[a]);
  std::vector<int64_t> digits = shard_digits(*this, index);
  for (size_t k = 0; k < digits.size(); ++k) {
    origin[axis_position(*this, shard()[k].axis)] += digits[k] * shard()[k].stride;
  }
  StepCounter counter("the list of replicas", *this);
  std::vector<Coordinates> points{std::move(origin)};
  for (const Iter& iter : replica()) {
    if (iter.extent == 1 || iter.stride == 0) continue;
    size_t a = axis_position(*this, iter.axis);
    std::vector<Coordinates> next;
    for (const Coordinates& point : points) {
      counter.step(iter.extent);
      for (int64_t digit = 0; digit < iter.extent; ++digit) {
        next.push_back(point);
        next.back()[a] += digit * iter.stride;
      }
    }
    sort_unique(next);
    points = std::move(next);
  }
  if (!swizzle().identity() && std::binary_search(axes().begin(), axes().end(), axes::m())) {
    size_t a = axis_position(*this, axes::m());
    for (Coordinates& point : points) point[a] = swizzle().apply(point[a]);
    sort_unique(points);
  }
  std::vector<Point> result;
  for (const Coordinates& point : points) {
    Point& named = result.emplace_back();
    for (size_t a = 0; a < point.size(); ++a) named.emplace_hint(named.end(), axes()[a], point[a]);
  }
  return result;
}

std::vector<Point> Layout::apply(const std::vector<int64_t>& coordinate, const std::vector<int64_t>& shape) const {
  layout_detail::check_admitted(*this, shape);
  return apply(flatten(coordinate, shape));
}

namespace {

/// The terms of one axis: shard iters first, then replicas, with the iters' positions.
struct AxisTerms {
  std::vector<size_t> shard;
  std::vector<Term> terms;
};

AxisTerms axis_terms(const Layout& layout, Axis axis, bool differences) {
  AxisTerms result;
  for (size_t k = 0; k < layout.shard().size(); ++k) {
    const Iter& iter = layout.shard()[k];
    if (iter.axis != axis) continue;
    result.shard.push_back(k);
    result.terms.push_back({iter.stride, differences ? 1 - iter.extent : 0, iter.extent - 1});
  }
  for (const Iter& iter : layout.replica()) {
    if (iter.axis == axis) result.terms.push_back({iter.stride, differences ? 1 - iter.extent : 0, iter.extent - 1});
  }
  return result;
}

}  // namespace

std::optional<Layout::Collision> Layout::find_collision() const {
  StepCounter counter("injectivity", *this);
  for (Axis axis : axes()) {
    AxisTerms of_axis = axis_terms(*this, axis, true);
    // Two indices share a point when a difference of digits, not all 0 in the shard, sums to 0. Up to sign its first
    // digit that is not 0 is positive; the swizzle is a bijection and plays no part.
    for (size_t first = 0; first < of_axis.shard.size(); ++first) {
      std::vector<Term> terms = of_axis.terms;
      if (terms[first].high == 0) continue;
      for (size_t before = 0; before < first; ++before) terms[before].low = terms[before].high = 0;
      terms[first].low = 1;
      auto solution = solve_relation(terms, 0, counter);
      if (!solution) continue;
      std::vector<int64_t> a(shard().size(), 0);
      std::vector<int64_t> b(shard().size(), 0);
      for (size_t k = 0; k < of_axis.shard.size(); ++k) {
        a[of_axis.shard[k]] = std::max<int64_t>((*solution)[k], 0);
        b[of_axis.shard[k]] = std::max<int64_t>(-(*solution)[k], 0);
      }
      Point point;
      for (Axis each : axes()) point[each] = offset(each);
      for (size_t k = 0; k < a.size(); ++k) point[shard()[k].axis] += a[k] * shard()[k].stride;
      for (size_t t = of_axis.shard.size(); t < terms.size(); ++t) {
        point[axis] += std::max<int64_t>((*solution)[t], 0) * terms[t].stride;
      }
      if (auto it = point.find(axes::m()); it != point.end()) it->second = swizzle().apply(it->second);
      int64_t x = shard_index(*this, a);
      int64_t y = shard_index(*this, b);
      return Collision{std::min(x, y), std::max(x, y), std::move(point)};
    }
  }
  return std::nullopt;
}

bool Layout::is_injective() const { return !find_collision().has_value(); }

std::optional<int64_t> Layout::inverse(const Point& point) const {
  if (auto collision = find_collision()) {
    throw_layout_error(Code::NotInjective, {{"layout", to_string(*this)},
                                            {"first", collision->first},
                                            {"second", collision->second},
                                            {"point", to_string(collision->point)}});
  }
  for (const auto& [axis, value] : point) {
    if (value != 0 && !std::binary_search(axes().begin(), axes().end(), axis)) return std::nullopt;
  }
  StepCounter counter("the inverse", *this);
  std::vector<int64_t> digits(shard().size(), 0);
  for (Axis axis : axes()) {
    auto it = point.find(axis);
    int64_t value = it == point.end() ? 0 : it->second;
    if (axis == axes::m()) value = swizzle().apply(value);
    layout_detail::Wide target = layout_detail::Wide{value} - offset(axis);
    if (target != static_cast<int64_t>(target)) return std::nullopt;  // beyond every span
    AxisTerms of_axis = axis_terms(*this, axis, false);
    auto solution = solve_relation(of_axis.terms, static_cast<int64_t>(target), counter);
    if (!solution) return std::nullopt;
    for (size_t k = 0; k < of_axis.shard.size(); ++k) digits[of_axis.shard[k]] = (*solution)[k];
  }
  return shard_index(*this, digits);
}

std::optional<std::vector<int64_t>> Layout::inverse(const Point& point, const std::vector<int64_t>& shape) const {
  layout_detail::check_admitted(*this, shape);
  std::optional<int64_t> index = inverse(point);
  if (!index) return std::nullopt;
  return unflatten(*index, shape);
}

}  // namespace helve
