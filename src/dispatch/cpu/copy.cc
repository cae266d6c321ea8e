// Copies on the CPU as element loops.
// The existing elements are a rectangle; a tile that reaches past it is padded first and then filled from the
// rectangle, so that the common full tile has no test in its inner loop.
#include <fmt/format.h>

#include "copy_regions.h"
#include "element_nest.h"
#include "helve/arith/simplify.h"
#include "helve/ir/expr/number.h"
#include "helve/support/diagnostic.h"
#include "schedules.h"

namespace helve::cpu {

namespace {

/// How many elements of each dimension of the region exist in the buffer: `ends` gives the end of each dimension.
struct Rectangle {
  std::vector<Expr> extents;  ///< one per dimension that is not a point
  Expr points_inside;  ///< null if all points are known to be inside
  bool full = true;  ///< every extent is known to be the region's own
};

Rectangle rectangle_of(const Region& region, const std::vector<Expr>& ends, const Facts& facts) {
  Rectangle out;
  for (size_t d = 0; d < region.ranges.size(); ++d) {
    const Range& r = region.ranges[d];
    if (r.point) {
      Expr inside = less(r.begin, ends[d]);
      if (can_prove(inside, facts)) continue;
      out.points_inside = out.points_inside ? logical_and(out.points_inside, inside) : inside;
      continue;
    }
    Expr left = simplify(ends[d] - r.begin, facts);
    if (can_prove(apply(Op::Ge, {left, r.extent}), facts)) {
      out.extents.push_back(r.extent);
      continue;
    }
    out.extents.push_back(max(int_imm(0), min(r.extent, left)));
    out.full = false;
  }
  out.full = out.full && !out.points_inside;
  return out;
}

/// Names the extents that are not simple, so that inner loops do not recompute them.
std::vector<Expr> bind_extents(const std::vector<Expr>& extents, std::vector<Stmt>* binds) {
  std::vector<Expr> out;
  for (const Expr& e : extents) {
    if (e->kind == ExprKind::IntImm || e->kind == ExprKind::Var) {
      out.push_back(e);
      continue;
    }
    VarRef var = make_var(fmt::format("n{}", out.size()));
    binds->push_back(bind(var, e));
    out.push_back(Expr(var));
  }
  return out;
}

Stmt fill_region(const Region& dst, const Expr& value) {
  std::vector<Expr> extents = dst.shape();
  return element_nest(nest_dims(dst, extents),
                      [&](const std::vector<Expr>& at) { return store(dst.buffer, region_indices(dst, at), value); });
}

/// A copy both of whose sides may end early: elements are tested one by one.
Stmt copy_elements(const CopyRegions& copy_of) {
  const auto& [src, dst, src_ends, dst_ends, pad] = copy_of;
  const auto inside = [](const std::vector<Expr>& indices, const std::vector<Expr>& ends) {
    Expr all;
    for (size_t d = 0; d < indices.size(); ++d) {
      const Expr one = less(indices[d], ends[d]);
      all = all ? logical_and(all, one) : one;
    }
    return all ? all : bool_imm(true);
  };
  return element_nest(nest_dims(dst, dst.shape()), [&](const std::vector<Expr>& at) {
    const std::vector<Expr> from = region_indices(src, at), to = region_indices(dst, at);
    const Expr value = cast(load(src.buffer, from), dst.buffer->dtype);
    return if_then(inside(to, dst_ends), store(dst.buffer, to, select(inside(from, src_ends), value, pad)));
  });
}

/// The copy of the elements whose source and destination exist.
Stmt copy_rectangle(const CopyRegions& copy_of, const LoweringContext& context) {
  const auto& [src, dst, src_ends, dst_ends, pad] = copy_of;
  const Rectangle readable = rectangle_of(src, src_ends, *context.facts);
  const Rectangle writable = rectangle_of(dst, dst_ends, *context.facts);
  HELVE_CHECK(readable.extents.size() == writable.extents.size(), "regions of a copy differ in rank");
  if (!readable.full && !writable.full) return copy_elements(copy_of);

  std::vector<Stmt> out;
  const Rectangle& rectangle = writable.full ? readable : writable;
  const std::vector<Expr> extents = bind_extents(rectangle.extents, &out);
  // Blocks follow the side that is tiled.
  std::vector<NestDim> dims = nest_dims(is_tiled(*dst.buffer) ? dst : src, extents);
  Stmt copy = element_nest(dims, [&](const std::vector<Expr>& at) {
    Expr value = load(src.buffer, region_indices(src, at));
    return store(dst.buffer, region_indices(dst, at), cast(value, dst.buffer->dtype));
  });
  if (rectangle.points_inside) copy = if_then(rectangle.points_inside, copy);
  if (!readable.full) {
    Expr short_of;
    const std::vector<Expr> whole = src.shape();
    for (size_t d = 0; d < extents.size(); ++d) {
      if (extents[d] == whole[d]) continue;
      Expr lacks = less(extents[d], whole[d]);
      short_of = short_of ? apply(Op::Or, {short_of, lacks}) : lacks;
    }
    if (readable.points_inside) {
      Expr outside = apply(Op::Not, {readable.points_inside});
      short_of = short_of ? apply(Op::Or, {short_of, outside}) : outside;
    }
    out.push_back(if_then(short_of, fill_region(dst, pad)));
  }
  out.push_back(copy);
  return seq(std::move(out));
}

/// A copy within one buffer: all elements are read before any is written.
Stmt copy_through_buffer(const TileOp& op, const Expr& pad, const LoweringContext& context, std::string* declined) {
  const Region& src = op.region(0);
  const Region& dst = op.region(1);
  if (!constant_shape(src.shape())) {
    *declined = "the two regions of one buffer may overlap and have no constant shape";
    return {};
  }
  const BufferRef between = make_buffer("between", src.buffer->dtype, MemoryScope::Local, src.shape());
  const Region all = whole_region(between);
  return seq({alloc(between), copy_rectangle({src, all, ends_of(src), ends_of(all), pad}, context),
              copy_rectangle({all, dst, ends_of(all), ends_of(dst), pad}, context)});
}

}  // namespace

Stmt lower_copy(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const std::optional<CopyRegions> regions = copy_regions(op, context, declined);
  if (!regions) return {};
  const Region& src = op.region(0);
  const Region& dst = op.region(1);
  if (src.buffer == dst.buffer && !disjoint(src, dst, *context.facts))
    return copy_through_buffer(op, regions->pad, context, declined);
  if (is_global(*src.buffer) && is_global(*dst.buffer)) return copy_elements(*regions);
  return copy_rectangle(*regions, context);
}

Stmt lower_mesh_tensor_copy(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const std::optional<CopyRegions> regions = copy_regions(op, context, declined);
  return regions ? copy_rectangle(*regions, context) : Stmt();
}

Stmt lower_fill(const TileOp& op, const LoweringContext&, std::string*) {
  const Region& dst = op.region(0);
  return fill_region(dst, op.op == TileOpcode::Fill ? op.expr(1) : number_imm(0, dst.buffer->dtype));
}

}  // namespace helve::cpu
