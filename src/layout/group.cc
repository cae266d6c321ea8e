// Grouping a shard by shapes.
// A layout has no rank; whoever wants the digits of one dimension asks for the blocks of a shape.
#include <algorithm>

#include "blocks.h"
#include "helve/layout/layout.h"
#include "helve/layout/notation.h"
#include "helve/support/text.h"
#include "integers.h"

namespace helve {

namespace layout_detail {

namespace {

bool refuse_cut(CutFailure* failure, const CutFailure& found) {
  if (failure) *failure = found;
  return false;
}

}  // namespace

bool try_cut_blocks(const Iters& iters, const std::vector<int64_t>& shape, Iters& result, Separators& separators,
                    CutFailure* failure) {
  // Law: merging only removes boundaries, so a boundary that cannot be cut out of the normalized iters is in no equal
  // shard.
  const Iter* next = iters.begin();
  int64_t rest = 1;  // what is left of the iter at `next`, its fast part; 1: nothing taken yet
  separators.push_back(0);
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t needed = shape[d];
    while (needed > 1) {
      HELVE_CHECK(next != iters.end(), "a shape with more elements than the iters that it groups");
      const int64_t extent = rest > 1 ? rest : next->extent;
      if (extent == needed) {
        result.push_back({extent, next->stride, next->axis});
        needed = 1;
        ++next;
        rest = 1;
      } else if (extent < needed) {
        const Quotient left = divide(needed, extent);
        if (left.rest != 0) return refuse_cut(failure, {d, needed, {extent, next->stride, next->axis}});
        result.push_back({extent, next->stride, next->axis});
        needed = left.value;
        ++next;
        rest = 1;
      } else {
        const Quotient left = divide(extent, needed);
        if (left.rest != 0) return refuse_cut(failure, {d, needed, {extent, next->stride, next->axis}});
        rest = left.value;
        result.push_back({needed, rest * next->stride, next->axis});
        needed = 1;
      }
    }
    separators.push_back(result.size());
  }
  return true;
}

std::optional<Blocks> try_cut_blocks(const Iters& iters, const std::vector<int64_t>& shape) {
  Blocks blocks;
  if (!try_cut_blocks(iters, shape, blocks.iters, blocks.separators)) return std::nullopt;
  return blocks;
}

void cut_blocks(const Iters& iters, const std::vector<int64_t>& shape, const Layout& layout, Iters& result,
                Separators& separators) {
  CutFailure failure{};
  if (try_cut_blocks(iters, shape, result, separators, &failure)) return;
  throw_layout_error(Code::GroupDivisibility, {{"shape", shape_text(shape)},
                                               {"layout", to_string(layout)},
                                               {"dim", static_cast<int64_t>(failure.dim)},
                                               {"needed", failure.needed},
                                               {"iter", to_string(failure.iter)}});
}

Blocks cut_blocks(const Iters& iters, const std::vector<int64_t>& shape, const Layout& layout) {
  Blocks blocks;
  cut_blocks(iters, shape, layout, blocks.iters, blocks.separators);
  return blocks;
}

}  // namespace layout_detail

Iters GroupedLayout::block(size_t d) const {
  HELVE_CHECK(d + 1 < separators.size(), "a block beyond the rank");
  return {layout.shard().begin() + separators[d], layout.shard().begin() + separators[d + 1]};
}

GroupedLayout Layout::group(const std::vector<int64_t>& shape) const {
  layout_detail::check_admitted(*this, shape);
  GroupedLayout result;
  layout_detail::cut_blocks(layout_detail::normalize_shard(shard_), shape, *this, result.layout.shard_,
                            result.separators);
  complete(result.layout);
  return result;
}

namespace {

/// The extents between the boundaries of all shapes, slowest first. Boundaries are products of last dimensions.
std::vector<int64_t> refine(const std::vector<std::vector<int64_t>>& shapes) {
  std::vector<int64_t> boundaries;
  for (const std::vector<int64_t>& shape : shapes) {
    int64_t product = 1;
    for (size_t d = shape.size(); d-- > 0;) boundaries.push_back(product *= shape[d]);
  }
  std::sort(boundaries.begin(), boundaries.end());
  boundaries.erase(std::unique(boundaries.begin(), boundaries.end()), boundaries.end());
  std::vector<int64_t> refined;
  int64_t before = 1;
  for (int64_t boundary : boundaries) {
    if (boundary % before != 0) {
      throw_layout_error(Code::CommonRefinement,
                         {{"shapes", join(shapes, ", ", shape_text)}, {"smaller", before}, {"larger", boundary}});
    }
    if (boundary != before) refined.push_back(boundary / before);
    before = boundary;
  }
  return {refined.rbegin(), refined.rend()};
}

}  // namespace

GroupedMany Layout::group_many(const std::vector<std::vector<int64_t>>& shapes) const {
  for (const std::vector<int64_t>& shape : shapes) layout_detail::check_admitted(*this, shape);
  std::vector<int64_t> refined = shapes.empty() ? std::vector<int64_t>{size()} : refine(shapes);
  GroupedMany result;
  Separators cuts;
  layout_detail::cut_blocks(layout_detail::normalize_shard(shard_), refined, *this, result.layout.shard_, cuts);
  complete(result.layout);
  for (const std::vector<int64_t>& shape : shapes) {
    Separators& separators = result.separators.emplace_back(size_t{1}, size_t{0});
    size_t next = 0;
    for (int64_t extent : shape) {
      for (; extent > 1; ++next) extent /= refined[next];
      separators.push_back(cuts[next]);
    }
  }
  return result;
}

}  // namespace helve
