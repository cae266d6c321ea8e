// Shards cut into blocks.
// Grouping, products and recognition all ask for the iters of one dimension of a shape; they come from one cut of the
// shortest equal iters.
#pragma once

#include <optional>
#include <vector>

#include "helve/layout/layout.h"

namespace helve::layout_detail {

/// Appends the iters after D0 and D1: the unique shortest ones of the same map, without units; stride 0 on `m`.
void append_normalized(Iters& result, const Iters& shard);
inline Iters normalize_shard(const Iters& shard) {
  Iters result;
  append_normalized(result, shard);
  return result;
}

/// Iters cut into blocks, one for each dimension of a shape.
struct Blocks {
  Iters iters;
  Separators separators;

  const Iter* begin(size_t d) const { return iters.begin() + separators[d]; }
  const Iter* end(size_t d) const { return iters.begin() + separators[d + 1]; }
  Iters block(size_t d) const { return Iters(begin(d), end(d)); }
};

/// Where a shape cuts an iter off a divisor.
struct CutFailure {
  size_t dim;
  int64_t needed;
  Iter iter;
};

/// Cuts normalized iters with as many elements as `shape`; false, and `failure` filled when there is one, when no equal
/// iters have such blocks.
bool try_cut_blocks(const Iters& iters, const std::vector<int64_t>& shape, Iters& result, Separators& separators,
                    CutFailure* failure = nullptr);
std::optional<Blocks> try_cut_blocks(const Iters& iters, const std::vector<int64_t>& shape);

/// The same, or DivisibilityError, which names `layout`.
void cut_blocks(const Iters& iters, const std::vector<int64_t>& shape, const Layout& layout, Iters& result,
                Separators& separators);
Blocks cut_blocks(const Iters& iters, const std::vector<int64_t>& shape, const Layout& layout);

}  // namespace helve::layout_detail
