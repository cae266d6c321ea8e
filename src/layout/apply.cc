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
using layout_detail::Terms;

namespace {

size_t axis_position(const Axes& axes, Axis axis) {
  size_t a = 0;
  while (!(axes[a] == axis)) ++a;
  return a;
}

int64_t shard_index(const Layout& layout, const std::vector<int64_t>& digits) {
  int64_t index = 0;
  for (size_t k = 0; k < digits.size(); ++k) index = index * layout.shard()[k].extent + digits[k];
  return index;
}

[[noreturn]] void refuse_index(int64_t index, int64_t size) {
  throw_layout_error(Code::CoordinateBounds,
                     {{"coordinate", shape_text(std::vector{index})}, {"shape", shape_text(std::vector{size})}});
}

/// Adds the copies of one replica iter to every row, those of the larger digits after.
void replicate(Points& points, const Iter& iter) {
  const size_t width = points.axes().size();
  const size_t moved = axis_position(points.axes(), iter.axis);
  const size_t rows = points.size();
  points.resize(rows * static_cast<size_t>(iter.extent));
  const int64_t* from = points.row(0);
  int64_t* to = points.row(rows);
  for (const int64_t* end = points.row(points.size()); to != end; from += width, to += width) {
    for (size_t a = 0; a < width; ++a) to[a] = from[a] + (a == moved ? iter.stride : 0);
  }
}

}  // namespace

Points Layout::apply(int64_t index) const {
  if (static_cast<uint64_t>(index) >= static_cast<uint64_t>(size_)) [[unlikely]]
    refuse_index(index, size_);
  Points points(axes_);
  points.resize(1);
  InlineVector<int64_t, 8> steps;  // what each digit adds on its axis
  steps.resize_unset(shard_.size());
  for (size_t k = shard_.size(); k-- > 0;) {
    const layout_detail::Quotient digit = layout_detail::divide(index, shard_[k].extent);
    steps[k] = digit.rest * shard_[k].stride;
    index = digit.value;
  }
  int64_t* origin = points.row(0);
  const Point::Entry* start = offset_.begin();  // in the order of the axes
  for (Axis axis : axes_) {
    int64_t sum = start != offset_.end() && start->first == axis ? start++->second : 0;
    for (size_t k = 0; k < steps.size(); ++k) sum += shard_[k].axis == axis ? steps[k] : 0;
    *origin++ = sum;
  }
  if (!replica_.empty()) {
    StepCounter counter("the list of replicas", *this);
    for (size_t k = replica_.size(); k-- > 0;) {  // the last the fastest: usual replicas come out sorted
      const Iter& iter = replica_[k];
      if (iter.extent == 1 || iter.stride == 0) continue;
      counter.step(static_cast<int64_t>(points.size()), iter.extent);
      const bool ascending = points.size() == 1 && iter.stride > 0;
      replicate(points, iter);
      if (!ascending) points.sort();
    }
  }
  if (!swizzle_.identity() && std::find(axes_.begin(), axes_.end(), axes::m()) != axes_.end()) {
    const size_t a = axis_position(axes_, axes::m());
    for (size_t i = 0; i < points.size(); ++i) points.row(i)[a] = swizzle_.apply(points.row(i)[a]);
    points.sort();
  }
  return points;
}

Points Layout::apply(const std::vector<int64_t>& coordinate, const std::vector<int64_t>& shape) const {
  layout_detail::check_admitted(*this, shape);
  return apply(flatten(coordinate, shape));
}

namespace {

/// The terms of one axis: shard iters first, then replicas, with the iters' positions.
struct AxisTerms {
  std::vector<size_t> shard;
  Terms terms;
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
      Terms terms = of_axis.terms;
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
      if (auto* at = point.find(axes::m()); at != point.end()) at->second = swizzle().apply(at->second);
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
    if (value != 0 && std::find(axes_.begin(), axes_.end(), axis) == axes_.end()) return std::nullopt;
  }
  StepCounter counter("the inverse", *this);
  std::vector<int64_t> digits(shard().size(), 0);
  for (Axis axis : axes()) {
    int64_t value = point.at(axis);
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
