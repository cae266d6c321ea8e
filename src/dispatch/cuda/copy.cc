// Copies and fills on a GPU as one loop over all elements.
// The conditions on ends are inside of the loop; the division among threads moves them out of vectors again.
#include "copy_elements.h"
#include "element_nest.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/number.h"
#include "helve/support/diagnostic.h"
#include "over_elements.h"
#include "schedules.h"

namespace helve::cuda {

namespace {

/// The condition under which the element exists; null if it is known to.
Expr inside(const std::vector<Expr>& indices, const std::vector<Expr>& ends, const Facts& facts) {
  Expr all;
  for (size_t d = 0; d < indices.size(); ++d) {
    const Expr one = simplify(less(indices[d], ends[d]), facts);
    if (can_prove(one, facts)) continue;
    all = all ? logical_and(all, one) : one;
  }
  return all;
}

}  // namespace

Stmt copy_elements(const CopyRegions& copy, const Facts& facts,
                   const std::function<Expr(const std::vector<Expr>& at)>& where) {
  return over_elements(copy.dst.shape(), facts, [&](const std::vector<Expr>& at, const Facts& known) {
    const std::vector<Expr> from = region_indices(copy.src, at);
    const std::vector<Expr> to = region_indices(copy.dst, at);
    const DType dtype = copy.dst.buffer->dtype;
    Stmt moved = store(copy.dst.buffer, to, cast(load(copy.src.buffer, from), dtype));
    if (const Expr readable = inside(from, copy.src_ends, known)) {
      moved = if_then(readable, moved, store(copy.dst.buffer, to, cast(copy.pad, dtype)));
    }
    if (const Expr writable = inside(to, copy.dst_ends, known)) moved = if_then(writable, moved);
    return where ? if_then(simplify(where(at), known), moved) : moved;
  });
}

Stmt lower_copy(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const std::optional<CopyRegions> regions = copy_regions(op, context, declined);
  if (!regions) return {};
  const Facts& facts = *context.facts;
  // A copy that is complete at once is still a group that waits count.
  const Stmt counted = op.op == TileOpcode::CopyAsync ? tile_op(TileOpcode::CommitAsync, {}, op.span) : Stmt();
  if (regions->src.buffer != regions->dst.buffer || disjoint(regions->src, regions->dst, facts)) {
    return seq({copy_elements(*regions, facts), counted});
  }
  // All elements are read before any is written.
  if (!constant_shape(regions->src.shape())) {
    *declined = "the two regions of one buffer may overlap and have no constant shape";
    return {};
  }
  const BufferRef between =
      make_buffer("between", regions->src.buffer->dtype, MemoryScope::Fragment, regions->src.shape());
  const Region all = whole_region(between);
  return seq({alloc(between), copy_elements({regions->src, all, regions->src_ends, ends_of(all), regions->pad}, facts),
              copy_elements({all, regions->dst, ends_of(all), regions->dst_ends, regions->pad}, facts), counted});
}

/// The run of one iteration, element by element.
Stmt lower_run(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const std::optional<CopyRegions> regions = copy_regions(op, context, declined);
  if (!regions) return {};
  const Stmt elements = copy_elements(*regions, *context.facts);
  const For& loop = *as<For>(elements);
  return serial_nest(loop, loop.body);
}

Stmt lower_fill(const TileOp& op, const LoweringContext& context, std::string*) {
  const Region& dst = op.region(0);
  const Expr value = op.op == TileOpcode::Fill ? op.expr(1) : number_imm(0, dst.buffer->dtype);
  return over_elements(dst.shape(), *context.facts, [&](const std::vector<Expr>& at, const Facts&) {
    return store(dst.buffer, region_indices(dst, at), value);
  });
}

}  // namespace helve::cuda
