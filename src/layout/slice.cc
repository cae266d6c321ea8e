// The layout of a region.
// Peels whole digits, reads a pivot that does not wrap, and otherwise fits iters to the listed displacements: the last
// extent of a normalized shard is forced to be the first index off the first slope, so the fit is complete.
#include <fmt/format.h>

#include <algorithm>

#include "blocks.h"
#include "helve/layout/notation.h"
#include "helve/layout/rearrange.h"
#include "helve/support/text.h"
#include "integers.h"

namespace helve {

namespace {

using layout_detail::StepCounter;

using Displacement = std::vector<int64_t>;  // one entry for each axis of the sliced layout

/// Iters that give listed displacements, or the first index at which every attempt fails and why.
struct Fit {
  Iters iters;
  int64_t failed_at = -1;
  std::string reason;
};

std::string displacement_text(const Displacement& value, const Axes& axes) {
  Point point;
  for (size_t a = 0; a < axes.size(); ++a) point[axes[a]] = value[a];
  return to_string(point);
}

/// Law: in a normalized shard the last stride is f(1), and its extent the least x with f(x) != x * f(1).
Fit fit_iters(std::vector<Displacement> values, const Axes& axes) {
  Fit fit;
  int64_t unit = 1;
  while (values.size() > 1) {
    const Displacement step = values[1];
    size_t moved = axes.size();
    for (size_t a = 0; a < axes.size(); ++a) {
      if (step[a] == 0) continue;
      if (moved != axes.size()) {
        return {{}, unit, fmt::format("its displacement {} is on two axes", displacement_text(step, axes))};
      }
      moved = a;
    }
    int64_t size = static_cast<int64_t>(values.size());
    auto differs = [&](int64_t x, int64_t from) {
      for (size_t a = 0; a < axes.size(); ++a) {
        if (values[x][a] != values[from][a] + (x - from) * step[a]) return true;
      }
      return false;
    };
    int64_t extent = 2;
    while (extent < size && !differs(extent, 0)) ++extent;
    if (size % extent != 0) {
      return {
          {}, extent * unit, fmt::format("it leaves the stride of those before it after {} of {} steps", extent, size)};
    }
    std::vector<Displacement> rest;
    for (int64_t x = 0; x < size; ++x) {
      int64_t from = x - x % extent;
      if (differs(x, from)) {
        Displacement expected = values[from];
        for (size_t a = 0; a < axes.size(); ++a) expected[a] += (x - from) * step[a];
        return {{},
                x * unit,
                fmt::format("its displacement is {}, an iter would give {}", displacement_text(values[x], axes),
                            displacement_text(expected, axes))};
      }
      if (x == from) rest.push_back(values[x]);
    }
    fit.iters.push_back(moved == axes.size() ? Iter{extent, 0, axes::m()} : Iter{extent, step[moved], axes[moved]});
    unit *= extent;
    values = std::move(rest);
  }
  std::reverse(fit.iters.begin(), fit.iters.end());
  return fit;
}

Displacement displacement(const Iters& iters, int64_t index, const Axes& axes) {
  Displacement value(axes.size(), 0);
  for (size_t k = iters.size(); k-- > 0;) {
    size_t a = static_cast<size_t>(std::lower_bound(axes.begin(), axes.end(), iters[k].axis) - axes.begin());
    if (iters[k].stride != 0) value[a] += index % iters[k].extent * iters[k].stride;
    index /= iters[k].extent;
  }
  return value;
}

Displacement difference(Displacement a, const Displacement& b) {
  for (size_t k = 0; k < a.size(); ++k) a[k] -= b[k];
  return a;
}

/// The iters of [begin, begin + length) of one block; none when it is no layout by itself.
std::optional<Iters> slice_block(Iters iters, int64_t begin, int64_t length, const Axes& axes, StepCounter& counter) {
  Iters peeled;
  while (length > 1 && begin % iters.back().extent == 0 && length % iters.back().extent == 0) {
    peeled.push_back(iters.back());
    begin /= iters.back().extent;
    length /= iters.back().extent;
    iters.pop_back();
  }
  Iters result;
  if (length > 1 && begin % iters.back().extent + length <= iters.back().extent) {
    result.push_back({length, iters.back().stride, iters.back().axis});
  } else if (length > 1) {
    counter.step(length);
    std::vector<Displacement> values;
    Displacement origin = displacement(iters, begin, axes);
    for (int64_t t = 0; t < length; ++t) values.push_back(difference(displacement(iters, begin + t, axes), origin));
    Fit fit = fit_iters(std::move(values), axes);
    if (fit.failed_at >= 0) return std::nullopt;
    result = std::move(fit.iters);
  }
  std::reverse(peeled.begin(), peeled.end());
  result.append(peeled.begin(), peeled.end());
  return result;
}

/// Dimension by dimension; none when the shape does not group the layout or a dimension is no layout by itself.
std::optional<Iters> slice_blocks(const Layout& layout, const Iters& iters, const IndexRegion& region,
                                  const std::vector<int64_t>& shape, StepCounter& counter) {
  auto blocks = layout_detail::try_cut_blocks(iters, shape);
  if (!blocks) return std::nullopt;
  Iters result;
  for (size_t d = 0; d < shape.size(); ++d) {
    auto [begin, end] = region[d];
    auto part = slice_block(blocks->block(d), begin, end - begin, layout.axes(), counter);
    if (!part) return std::nullopt;
    result.append(part->begin(), part->end());
  }
  return result;
}

std::string region_text(const IndexRegion& region) {
  return fmt::format("[{}]", join(region, ", ", [](const auto& r) { return fmt::format("{}:{}", r.first, r.second); }));
}

void check_region(const IndexRegion& region, const std::vector<int64_t>& shape) {
  if (region.size() != shape.size()) {
    throw_layout_error(
        Code::ShapeRank,
        {{"operation", "slice"}, {"left", "region " + region_text(region)}, {"right", "shape " + shape_text(shape)}});
  }
  for (size_t d = 0; d < shape.size(); ++d) {
    auto [begin, end] = region[d];
    if (begin >= 0 && begin < end && end <= shape[d]) continue;
    throw_layout_error(Code::RegionBounds,
                       {{"begin", begin}, {"end", end}, {"dim", static_cast<int64_t>(d)}, {"extent", shape[d]}});
  }
}

}  // namespace

Layout slice(const Layout& layout, const IndexRegion& region, const std::vector<int64_t>& shape) {
  layout_detail::check_admitted(layout, shape);
  check_region(region, shape);
  std::vector<int64_t> begin;
  std::vector<int64_t> extents;
  for (const auto& [first, end] : region) {
    begin.push_back(first);
    extents.push_back(end - first);
  }
  // An iter of stride 0 counts as one on `m`; its axis plays no part in a displacement.
  Iters iters = layout_detail::normalize_shard(layout.shard());
  Displacement origin = displacement(iters, flatten(begin, shape), layout.axes());
  StepCounter counter("the slice", layout);
  auto shard = slice_blocks(layout, iters, region, shape, counter);
  if (!shard) {
    int64_t size = layout_detail::shape_product(extents);
    counter.step(size);
    std::vector<Displacement> values;
    for (int64_t t = 0; t < size; ++t) {
      std::vector<int64_t> coordinate = unflatten(t, extents);
      for (size_t d = 0; d < coordinate.size(); ++d) coordinate[d] += begin[d];
      values.push_back(difference(displacement(iters, flatten(coordinate, shape), layout.axes()), origin));
    }
    Fit fit = fit_iters(std::move(values), layout.axes());
    if (fit.failed_at >= 0) {
      std::string at = shape_text(unflatten(fit.failed_at, extents));
      throw_layout_error(Code::SliceForm, {{"region", region_text(region)},
                                           {"layout", to_string(layout)},
                                           {"shape", shape_text(shape)},
                                           {"witness", "at coordinate " + at + " of the region " + fit.reason}});
    }
    shard = std::move(fit.iters);
  }
  Point offset = layout.offset();
  for (size_t a = 0; a < origin.size(); ++a) {
    if (origin[a] != 0) offset[layout.axes()[a]] += origin[a];
  }
  return Layout(std::move(*shard), layout.replica(), std::move(offset), layout.swizzle());
}

}  // namespace helve
