// Grouping a shard by shapes.
// A layout has no rank; whoever wants the digits of one dimension asks for the blocks of a shape.
#include <algorithm>

#include "helve/layout/layout.h"
#include "helve/layout/notation.h"
#include "helve/support/text.h"
#include "integers.h"

namespace helve {

namespace layout_detail {

std::optional<Blocks> try_cut_blocks(const std::vector<Iter>& iters, const std::vector<int64_t>& shape,
                                     CutFailure* failure) {
  // Law: merging only removes boundaries, so a boundary that cannot be cut out of the normalized iters is in no equal
  // shard.
  Blocks blocks{{}, {0}};
  size_t next = 0;
  int64_t rest = 1;  // what is left of iter `next`, its fast part; 1: nothing taken yet
  for (size_t d = 0; d < shape.size(); ++d) {
    int64_t needed = shape[d];
    while (needed > 1) {
      HELVE_CHECK(next < iters.size(), "a shape with more elements than the iters that it groups");
      Iter iter = iters[next];
      if (rest > 1) iter.extent = rest;
      if (needed % iter.extent == 0) {
        blocks.iters.push_back(iter);
        needed /= iter.extent;
        ++next;
        rest = 1;
      } else if (iter.extent % needed == 0) {
        rest = iter.extent / needed;
        blocks.iters.push_back({needed, rest * iter.stride, iter.axis});
        needed = 1;
      } else {
        if (failure) *failure = {d, needed, iter};
        return std::nullopt;
      }
    }
    blocks.separators.push_back(blocks.iters.size());
  }
  return blocks;
}

Blocks cut_blocks(const std::vector<Iter>& iters, const std::vector<int64_t>& shape, const Layout& layout) {
  CutFailure failure{};
  if (std::optional<Blocks> blocks = try_cut_blocks(iters, shape, &failure)) return std::move(*blocks);
  throw_layout_error(Code::GroupDivisibility, {{"shape", shape_text(shape)},
                                               {"layout", to_string(layout)},
                                               {"dim", static_cast<int64_t>(failure.dim)},
                                               {"needed", failure.needed},
                                               {"iter", to_string(failure.iter)}});
}

}  // namespace layout_detail

std::vector<Iter> GroupedLayout::block(size_t d) const {
  HELVE_CHECK(d + 1 < separators.size(), "a block beyond the rank");
  return {layout.shard().begin() + static_cast<ptrdiff_t>(separators[d]),
          layout.shard().begin() + static_cast<ptrdiff_t>(separators[d + 1])};
}

GroupedLayout Layout::group(const std::vector<int64_t>& shape) const {
  layout_detail::check_admitted(*this, shape);
  layout_detail::Blocks blocks = layout_detail::cut_blocks(layout_detail::normalize_shard(shard()), shape, *this);
  return {Layout(std::move(blocks.iters), replica(), offset(), swizzle()), std::move(blocks.separators)};
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
      throw_layout_error(Code::CommonRefinement, {{"shapes", join(shapes, ", ", shape_text)},
                                                  {"smaller", before},
                                                  {"larger", boundary}});
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
  layout_detail::Blocks blocks = layout_detail::cut_blocks(layout_detail::normalize_shard(shard()), refined, *this);
  GroupedMany result{Layout(blocks.iters, replica(), offset(), swizzle()), {}};
  for (const std::vector<int64_t>& shape : shapes) {
    std::vector<size_t>& separators = result.separators.emplace_back(1, 0);
    size_t next = 0;
    for (int64_t extent : shape) {
      for (; extent > 1; ++next) extent /= refined[next];
      separators.push_back(blocks.separators[next]);
    }
  }
  return result;
}

}  // namespace helve
