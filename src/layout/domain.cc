// Layouts of ordinary buffers, and address terms.
// Both are readings of the algebra: a tiled buffer is a tile of row-major blocks, a term is an iter of a grouped shard.
#include "helve/layout/domain.h"

#include <algorithm>

#include "helve/layout/notation.h"
#include "helve/support/text.h"
#include "integers.h"

namespace helve {

namespace {

using layout_detail::checked_multiply;

void check_not_negative(const std::vector<int64_t>& shape) {
  for (size_t d = 0; d < shape.size(); ++d) {
    if (shape[d] >= 0) continue;
    throw_layout_error(Code::ShapeExtent, {{"shape", shape_text(shape)},
                                           {"extent", shape[d]},
                                           {"dim", static_cast<int64_t>(d)}});
  }
}

Layout compact(const std::vector<int64_t>& domain) {
  int64_t size = layout_detail::shape_product(domain);
  Iters shard;
  for (int64_t extent : domain) {
    size /= extent;
    if (extent > 1) shard.push_back({extent, size, axes::m()});
  }
  return Layout(std::move(shard));
}

}  // namespace

Placement row_major(const std::vector<int64_t>& shape) {
  check_not_negative(shape);
  std::vector<int64_t> domain = shape;
  for (int64_t& extent : domain) extent = std::max<int64_t>(extent, 1);
  return {domain, compact(domain)};
}

Placement tiled(const std::vector<int64_t>& shape, const std::vector<int64_t>& tile_shape) {
  check_not_negative(shape);
  layout_detail::shape_product(tile_shape);
  if (tile_shape.size() > shape.size()) {
    throw_layout_error(Code::TileRank, {{"tile", shape_text(tile_shape)}, {"shape", shape_text(shape)}});
  }
  std::vector<int64_t> inner(shape.size() - tile_shape.size(), 1);
  inner.insert(inner.end(), tile_shape.begin(), tile_shape.end());
  std::vector<int64_t> blocks(shape.size());
  std::vector<int64_t> domain(shape.size());
  for (size_t d = 0; d < shape.size(); ++d) {
    blocks[d] = std::max<int64_t>(1, shape[d] / inner[d] + (shape[d] % inner[d] != 0));
    domain[d] = checked_multiply(blocks[d], inner[d], "the domain of shape " + shape_text(shape));
  }
  return {domain, tile(compact(blocks), blocks, compact(inner), inner)};
}

std::vector<AddressTerm> address_terms(const Layout& layout, const std::vector<int64_t>& domain) {
  GroupedLayout grouped = layout.group(domain);
  std::vector<AddressTerm> terms;
  for (size_t d = 0; d < grouped.rank(); ++d) {
    int64_t divisor = domain[d];
    for (const Iter& iter : grouped.block(d)) {
      bool outermost = divisor == domain[d];
      divisor /= iter.extent;
      if (iter.stride != 0) terms.push_back({d, divisor, iter.extent, iter.stride, iter.axis, outermost});
    }
  }
  return terms;
}

}  // namespace helve
