// TMA bulk copies between global and shared memory (cp.async.bulk).
// Dimensions are merged into one piece while both regions are contiguous; the remaining ones become loops over pieces.
#include "helve/analysis/bulk_copy.h"

#include <fmt/format.h>

#include "helve/analysis/copy_dimensions.h"
#include "helve/analysis/element_address.h"
#include "helve/analysis/multiple.h"
#include "helve/arith/simplify.h"

namespace helve {

namespace {

bool is_one(const Expr& e) {
  const int64_t* value = int_value(e);
  return value && *value == 1;
}

/// Why TMA cannot copy from one buffer to the other; empty if it can.
std::string bulk_refusal(const Buffer& src, const Buffer& dst) {
  const bool loads = is_global(src) && dst.scope == MemoryScope::Shared;
  const bool stores = src.scope == MemoryScope::Shared && is_global(dst);
  if (!loads && !stores) {
    return fmt::format("'{}' and '{}' are not a global tensor and shared memory", src.name, dst.name);
  }
  if (src.dtype != dst.dtype) return fmt::format("it converts {} to {}", to_string(src.dtype), to_string(dst.dtype));
  if (src.dtype.bits < 8) return fmt::format("elements of {} share a byte", to_string(src.dtype));
  const Buffer& memory = loads ? dst : src;
  if (memory.layout) return fmt::format("'{}' has a layout, and TMA copies row by row", memory.name);
  return "";
}

/// Does each piece begin at a multiple of `unit` elements?
bool is_aligned(const BulkPieces& pieces, const Region& region, size_t i, int64_t unit, Facts facts) {
  std::vector<Expr> at;
  for (const BulkPieces::Loop& loop : pieces.loops) {
    const VarRef var = make_var("piece");
    facts.bind_loop(var, int_imm(0), loop.extent);
    at.push_back(Expr(var));
  }
  return is_multiple(flat_address(*region.buffer, pieces.begin(region, i, at)), unit, facts);
}

}  // namespace

std::vector<Expr> BulkPieces::begin(const Region& region, size_t i, const std::vector<Expr>& at) const {
  std::vector<Expr> out;
  for (const Range& range : region.ranges) out.push_back(range.begin);
  for (size_t k = 0; k < loops.size(); ++k) {
    Expr& index = out[i == 0 ? loops[k].src : loops[k].dst];
    index = simplify(index + at[k]);
  }
  return out;
}

std::optional<BulkPieces> bulk_pieces(const Region& src, const Region& dst, std::string* reason) {
  const std::vector<size_t> from = open_dimensions(src), to = open_dimensions(dst);
  const std::vector<Expr> src_strides = strides_of(*src.buffer), dst_strides = strides_of(*dst.buffer);
  BulkPieces out;
  out.length = int_imm(1);
  bool joined = from.size() == to.size();
  for (size_t k = from.size(); joined && k-- > 0;) {
    const Expr& extent = dst.ranges[to[k]].extent;
    if (is_one(extent)) continue;
    const Expr &a = src_strides[from[k]], &b = dst_strides[to[k]];
    if (out.loops.empty() && same_expr(a, out.length) && same_expr(b, out.length)) {
      out.length = simplify(out.length * extent);
      continue;
    }
    joined = !is_one(out.length);
    out.loops.insert(out.loops.begin(), {from[k], to[k], extent});
  }
  if (joined) return out;
  *reason = "its elements are not side by side";
  return std::nullopt;
}

bool is_bulk_copy(const TileOp& op, const Facts& facts, std::string* reason) {
  const Region &src = op.region(0), &dst = op.region(1);
  *reason = bulk_refusal(*src.buffer, *dst.buffer);
  if (!reason->empty()) return false;
  const std::optional<BulkPieces> pieces = bulk_pieces(src, dst, reason);
  if (!pieces) return false;
  if (facts.contradictory()) return true;  // never executed
  const int64_t unit = std::max<int64_t>(1, kBulkUnit / src.buffer->dtype.bytes());
  if (!is_multiple(pieces->length, unit, facts)) {
    *reason = fmt::format("its pieces are not known to be multiples of {} bytes", kBulkUnit);
    return false;
  }
  for (size_t i : {0, 1}) {
    const Region& region = op.region(i);
    if (!is_aligned(*pieces, region, i, unit, facts)) {
      *reason =
          fmt::format("an address in '{}' is not known to be a multiple of {} bytes", region.buffer->name, kBulkUnit);
      return false;
    }
    if (!is_global(*region.buffer)) continue;
    for (size_t d = 0; d < region.ranges.size(); ++d) {
      const Range& range = region.ranges[d];
      const Expr& end = region.buffer->shape[d];
      if (!begins_before(range, end, facts) && same_expr(extent_before(range, end, facts), range.extent)) continue;
      *reason = fmt::format("it may reach past the end of '{}'", region.buffer->name);
      return false;
    }
  }
  return true;
}

Expr begins_before(const Range& range, const Expr& end, const Facts& facts) {
  const Expr condition = simplify(less(range.begin, end), facts);
  return can_prove(condition, facts) ? Expr() : condition;
}

Expr extent_before(const Range& range, const Expr& end, const Facts& facts) {
  const Expr room = simplify(end - range.begin, facts);
  if (can_prove(apply(Op::Le, {range.extent, room}), facts)) return range.extent;
  return simplify(min(range.extent, room), facts);
}

}  // namespace helve
