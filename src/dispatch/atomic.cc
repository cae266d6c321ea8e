// The elements that an atomic operation combines.
// Each is an atomic store to one element, as users can write it.
#include "atomic.h"

#include "copy_regions.h"
#include "element_nest.h"
#include "helve/analysis/region_match.h"

namespace helve {

std::optional<AtomicUpdate> atomic_update(const TileOp& op, std::string* declined) {
  const StoreMode mode = atomic_mode(op.op);
  const Region& dst = op.region(0);
  if (!op.is_region(1)) {
    return AtomicUpdate{dst, dst, [=, value = op.expr(1), span = op.span](const std::vector<Expr>& at) {
                          return store(dst.buffer, region_indices(dst, at), value, span, mode);
                        }};
  }
  std::optional<std::pair<Region, Region>> matched = matched_regions(dst, op.region(1));
  if (!matched) {
    *declined = "the call decides which dimensions of dst and value match";
    return std::nullopt;
  }
  auto [to, from] = std::move(*matched);
  share_constant_extents(&to, &from);
  const Region& tiles = is_tiled(*from.buffer) ? from : to;
  return AtomicUpdate{to, tiles, [=, to = to, from = from, span = op.span](const std::vector<Expr>& at) {
                        const Expr value = load(from.buffer, region_indices(from, at));
                        return store(to.buffer, region_indices(to, at), cast(value, to.buffer->dtype), span, mode);
                      }};
}

}  // namespace helve
