// Copies between global and shared memory by TMA in pieces: T.cp_async_bulk.
// TMA copies the part inside of the tensor, in whole pieces; the threads copy the rest: the last bytes of a row that
// are no multiple of 16, and the padding past the end.
#include <fmt/format.h>

#include <algorithm>

#include "copy_elements.h"
#include "helve/analysis/bulk_copy.h"
#include "helve/arith/simplify.h"
#include "schedules.h"
#include "tma_copy.h"

namespace helve::cuda {

namespace {

constexpr int64_t kSmallestPiece = 2048;  // bytes; smaller ones only on request

/// Why the pieces are too small for TMA to pay off.
std::string why_small(const CopyRegions& copy) {
  std::string reason;
  const std::optional<BulkPieces> pieces = bulk_pieces(copy.src, copy.dst, &reason);
  if (!pieces) return reason;
  const int64_t* length = int_value(pieces->length);
  if (!length) return "how large its pieces are is known at the call only";
  const int64_t bytes = *length * copy.src.buffer->dtype.bytes();
  return bytes < kSmallestPiece ? fmt::format("its pieces have {} bytes, less than {}", bytes, kSmallestPiece) : "";
}

/// The part of a copy that TMA makes, if any: the first elements of each dimension.
struct Part {
  CopyRegions copy;  ///< with the extents of the part
  Expr inside;  ///< the condition under which there is a part; null: there is
  std::vector<Expr> extents;  ///< one for each dimension that is no point
  Expr whole;  ///< the condition under which it is all of the copy; null: it is

  bool empty() const { return inside && constant_value(inside) == 0; }
  Expr contains(const std::vector<Expr>& at) const {
    Expr all = inside;
    for (size_t k = 0; k < extents.size(); ++k) {
      const Expr one = less(at[k], extents[k]);
      all = all ? logical_and(all, one) : one;
    }
    return all;
  }
};

/// The part up to the tensor's ends, along the last dimension up to the last multiple of `unit` elements.
Part part_inside(const CopyRegions& copy, int64_t unit, const Facts& facts) {
  Part out{copy, {}, {}, {}};
  const bool loads = is_global(*copy.src.buffer);
  const Region& global = loads ? copy.src : copy.dst;
  const std::vector<Expr>& ends = loads ? copy.src_ends : copy.dst_ends;
  const auto also = [](Expr& all, const Expr& one) {
    if (one) all = all ? logical_and(all, one) : one;
  };
  for (size_t d = 0; d < global.ranges.size(); ++d) {
    const Range& range = global.ranges[d];
    const bool last = d + 1 == global.ranges.size();
    const Expr end = last ? simplify(floor_div(ends[d], int_imm(unit)) * int_imm(unit), facts) : ends[d];
    const Expr begins = begins_before(range, end, facts);
    also(out.inside, begins);
    also(out.whole, begins);
    if (range.point) continue;
    out.extents.push_back(extent_before(range, end, facts));
    if (same_expr(out.extents.back(), range.extent)) continue;
    also(out.whole, simplify(apply(Op::Le, {range.begin + range.extent, end}), facts));
  }
  for (Region* region : {&out.copy.src, &out.copy.dst}) {
    size_t k = 0;
    for (Range& range : region->ranges) {
      if (!range.point) range.extent = out.extents[k++];
    }
  }
  return out;
}

}  // namespace

Stmt lower_bulk(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const std::optional<CopyRegions> copy = copy_regions(op, context, declined);
  if (!copy) return {};
  *declined = why_no_tma(context, *copy);
  if (declined->empty() && !context.asked) *declined = why_small(*copy);
  if (!declined->empty()) return {};
  const Facts& facts = *context.facts;
  const Part part = part_inside(*copy, std::max<int64_t>(1, kBulkUnit / copy->src.buffer->dtype.bytes()), facts);
  // A blocking store is waited for alone, until its source can be reused; other copies of the block stay in flight.
  const bool counted = op.op == TileOpcode::CopyAsync || is_global(*copy->src.buffer);
  const Stmt moved =
      part.empty() ? Stmt() : tile_op(TileOpcode::CpAsyncBulk, {part.copy.src, part.copy.dst, !counted}, op.span);
  Facts holds = facts;
  if (part.inside) holds.assume(part.inside);
  if (!part.empty() && !is_bulk_copy(*as<TileOp>(moved), holds, declined)) return {};
  // A copy without such a part is still a group that waits count.
  const Stmt nothing = counted ? tile_op(TileOpcode::CommitAsync, {}, op.span) : Stmt();
  std::vector<Stmt> out = {part.empty()  ? nothing
                           : part.inside ? if_then(part.inside, moved, nothing, op.span)
                                         : moved};
  if (part.whole) {
    const Stmt rest =
        copy_elements(*copy, facts, [&](const std::vector<Expr>& at) { return apply(Op::Not, {part.contains(at)}); });
    out.push_back(if_then(apply(Op::Not, {part.whole}), rest, {}, op.span));
  }
  if (counted && op.op == TileOpcode::Copy) out.push_back(tile_op(TileOpcode::WaitAsync, {}, op.span));
  return seq(std::move(out));
}

Stmt keep_bulk(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const std::optional<CopyRegions> copy = copy_regions(op, context, declined);
  if (!copy) return {};
  *declined = why_no_tma(context, *copy);
  if (!declined->empty() || !is_bulk_copy(op, *context.facts, declined)) return {};
  return kept(op);
}

}  // namespace helve::cuda
