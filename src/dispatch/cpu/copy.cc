// Copies on the CPU as element loops.
// What can be read is one rectangle; a tile that reaches past it is padded first and then filled from the rectangle, so that the
// common full tile runs without a test in its inner loop.
#include <fmt/format.h>

#include "element_nest.h"
#include "helve/analysis/region_match.h"
#include "helve/arith/simplify.h"
#include "helve/support/diagnostic.h"
#include "schedules.h"

namespace helve::cpu {

namespace {

/// Extents of a copy are equal; where one side's is a constant, both are written with it.
void share_constant_extents(Region* a, Region* b) {
  size_t j = 0;
  for (Range& x : a->ranges) {
    if (x.point) continue;
    while (j < b->ranges.size() && b->ranges[j].point) ++j;
    if (j == b->ranges.size()) return;
    Range& y = b->ranges[j++];
    if (int_value(x.extent)) y.extent = x.extent;
    if (int_value(y.extent)) x.extent = y.extent;
  }
}

/// How many elements of each dimension of the region exist in the buffer: `ends` gives the end of each dimension.
struct Rectangle {
  std::vector<Expr> extents;  ///< one for each dimension that is no point
  Expr points_inside;         ///< null when all points are known to be inside
  bool full = true;           ///< every extent is known to be the region's own
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
  return element_nest(nest_dims(dst, extents), [&](const std::vector<Expr>& at) {
    return store(dst.buffer, region_indices(dst, at), value);
  });
}

/// The copy of the elements whose source and destination exist. `src_ends` and `dst_ends` bound the dimensions.
Stmt copy_rectangle(const Region& src_region, const std::vector<Expr>& src_ends, const Region& dst_region,
                    const std::vector<Expr>& dst_ends, const Expr& pad, const LoweringContext& context) {
  std::optional<std::pair<Region, Region>> both = matched_regions(src_region, dst_region);
  HELVE_CHECK(both, "a copy between regions that do not match");
  auto& [src, dst] = *both;
  share_constant_extents(&src, &dst);
  const Rectangle readable = rectangle_of(src, src_ends, *context.facts);
  const Rectangle writable = rectangle_of(dst, dst_ends, *context.facts);
  HELVE_CHECK(readable.extents.size() == writable.extents.size(), "regions of a copy differ in rank");
  HELVE_CHECK(readable.full || writable.full, "a copy between two regions that both may reach past their end");

  std::vector<Stmt> out;
  const Rectangle& rectangle = writable.full ? readable : writable;
  const std::vector<Expr> extents = bind_extents(rectangle.extents, &out);
  // Blocks follow whichever side is tiled.
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

/// Where each dimension of the region's buffer ends for a copy: past it, a global tensor pads and drops; anything else has no past.
std::vector<Expr> ends_of(const Region& region) {
  if (is_global(*region.buffer)) return region.buffer->shape;
  std::vector<Expr> out;
  for (const Range& r : region.ranges) out.push_back(r.begin + r.extent);
  return out;
}

/// Is some dimension of the two regions known to end before the other's begins?
bool disjoint(const Region& a, const Region& b, const Facts& facts) {
  auto before = [&](const Range& x, const Range& y) {
    return can_prove(apply(Op::Le, {x.begin + x.extent, y.begin}), facts);
  };
  for (size_t d = 0; d < a.ranges.size(); ++d) {
    if (before(a.ranges[d], b.ranges[d]) || before(b.ranges[d], a.ranges[d])) return true;
  }
  return false;
}

/// A copy inside one buffer: all elements are read before one is written.
Stmt copy_through_buffer(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const Region& src = op.region(0);
  const Region& dst = op.region(1);
  if (!constant_shape(src.shape())) {
    *declined = "the two regions of one buffer may overlap and have no constant shape";
    return {};
  }
  const BufferRef between = make_buffer("between", src.buffer->dtype, MemoryScope::Local, src.shape());
  const Region all = whole_region(between);
  return seq({alloc(between), copy_rectangle(src, ends_of(src), all, ends_of(all), op.expr(2), context),
              copy_rectangle(all, ends_of(all), dst, ends_of(dst), op.expr(2), context)});
}

}  // namespace

Stmt lower_copy(const TileOp& op, const LoweringContext& context, std::string* declined) {
  const Region& src = op.region(0);
  const Region& dst = op.region(1);
  const std::optional<std::pair<Region, Region>> both = matched_regions(src, dst);
  if (!both) {
    *declined = "extents known at the call decide which dimensions match";
    return {};
  }
  if (src.buffer == dst.buffer && !disjoint(src, dst, *context.facts)) return copy_through_buffer(op, context, declined);
  if (is_global(*src.buffer) && is_global(*dst.buffer)) {
    // Both ends may be ragged: elements are tested one by one.
    const auto& [from, to] = *both;
    return element_nest(nest_dims(to, to.shape()), [&](const std::vector<Expr>& at) {
      auto inside = [](const Region& region, const std::vector<Expr>& indices) {
        Expr all;
        for (size_t d = 0; d < indices.size(); ++d) {
          Expr one = less(indices[d], region.buffer->shape[d]);
          all = all ? logical_and(all, one) : one;
        }
        return all ? all : bool_imm(true);
      };
      const std::vector<Expr> from_at = region_indices(from, at);
      const std::vector<Expr> to_at = region_indices(to, at);
      Expr value = cast(load(from.buffer, from_at), to.buffer->dtype);
      return if_then(inside(to, to_at), store(to.buffer, to_at, select(inside(from, from_at), value, op.expr(2))));
    });
  }
  return copy_rectangle(src, ends_of(src), dst, ends_of(dst), op.expr(2), context);
}

Stmt lower_mesh_tensor_copy(const TileOp& op, const LoweringContext& context, std::string*) {
  const Function& f = *context.function;
  const bool reads = f.mesh_tensor(op.region(0).buffer.get()) != nullptr;
  const Region& local = op.region(reads ? 1 : 0);
  const MeshTensor& tensor = *f.mesh_tensor(op.region(reads ? 0 : 1).buffer.get());
  const std::vector<Expr> core(context.kernel->vars.begin(), context.kernel->vars.end());
  const std::vector<Expr> begins = shard_begin(*f.mesh, tensor, core);
  const std::vector<Expr> extents = local_shape(*f.mesh, tensor, core);
  Region global{tensor.buffer, {}};
  std::vector<Expr> ends;
  for (size_t d = 0; d < begins.size(); ++d) {
    const Expr start = op.exprs(2)[d] * int_imm(tensor.tiling[d]);
    global.ranges.push_back({plus(begins[d], start), int_imm(tensor.tiling[d]), false});
    ends.push_back(plus(begins[d], extents[d]));
  }
  if (reads) return copy_rectangle(global, ends, local, ends_of(local), op.expr(3), context);
  return copy_rectangle(local, ends_of(local), global, ends, op.expr(3), context);
}

Stmt lower_fill(const TileOp& op, const LoweringContext&, std::string*) {
  const Region& dst = op.region(0);
  const DType dtype = dst.buffer->dtype;
  if (op.op == TileOpcode::Fill) return fill_region(dst, op.expr(1));
  const Operand zero = dtype.is_bool() ? Operand(false) : dtype.is_float() ? Operand(0.0) : Operand(int64_t{0});
  return fill_region(dst, constant_of(zero, dtype));
}

}  // namespace helve::cpu
