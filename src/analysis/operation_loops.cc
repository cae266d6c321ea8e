// The loops that a tile operation means, one function for each rule of the table that has such loops.
// Elements are addressed by region_indices, as every lowering does it.
#include "helve/analysis/operation_loops.h"

#include <fmt/format.h>

#include "helve/analysis/region_match.h"
#include "helve/ir/expr/chain.h"
#include "helve/ir/expr/number.h"
#include "helve/ir/tensor/combine.h"
#include "helve/ir/tensor/region.h"
#include "helve/support/diagnostic.h"

namespace helve {

namespace {

std::vector<VarRef> variables(size_t count) {
  static constexpr const char* kNames[] = {"i", "j", "k", "l"};
  std::vector<VarRef> out;
  for (size_t d = 0; d < count; ++d) out.push_back(make_var(d < 4 ? kNames[d] : fmt::format("l{}", d)));
  return out;
}

std::vector<Expr> exprs(const std::vector<VarRef>& vars) { return {vars.begin(), vars.end()}; }

OperationLoops::Part part(const std::vector<VarRef>& vars, const std::vector<Expr>& extents, Stmt body, Span span) {
  if (vars.empty()) return {std::move(body), {}};
  const std::vector<Expr> begins(vars.size(), int_imm(0));
  return {for_loop(LoopKind::Parallel, vars, begins, extents, std::move(body), 1, std::move(span)), vars};
}

OperationLoops::Part filled(const TileOp& op, const Region& dst, const Expr& value) {
  const std::vector<Expr> extents = dst.shape();
  const std::vector<VarRef> vars = variables(extents.size());
  return part(vars, extents, store(dst.buffer, region_indices(dst, exprs(vars)), value, op.span), op.span);
}

OperationLoops of_gemm(const TileOp& op, bool swapped) {
  const Region &a = op.region(0), &b = op.region(1), &c = op.region(2);
  const bool ta = op.transposes(0), tb = op.transposes(1);
  const DType acc = accumulator(c.buffer->dtype);
  OperationLoops out;
  if (*op.clears()) out.parts.push_back(filled(op, c, number_imm(0, c.buffer->dtype)));
  const std::vector<VarRef> vars = variables(3);
  const Expr i(vars[0]), j(vars[1]), k(vars[2]);
  const auto factor = [&](const Region& region, bool transposed, const Expr& row, const Expr& column) {
    const std::vector<Expr> at = transposed ? std::vector<Expr>{column, row} : std::vector<Expr>{row, column};
    return cast(load(region.buffer, region_indices(region, at), op.span), acc, op.span);
  };
  const Expr left = factor(a, ta, i, k), right = factor(b, tb, k, j);
  const Expr product = swapped ? right * left : left * right;
  out.parts.push_back(part(vars, {c.shape()[0], c.shape()[1], a.shape()[ta ? 0 : 1]},
                           update(c.buffer, region_indices(c, {i, j}), product, StoreMode::Add, op.span), op.span));
  return out;
}

std::optional<StoreMode> mode_of(ReduceKind kind) {
  switch (kind) {
    case ReduceKind::Sum: return StoreMode::Add;
    case ReduceKind::Prod: return StoreMode::Mul;
    case ReduceKind::Max:
    case ReduceKind::AbsMax: return StoreMode::Max;
    case ReduceKind::Min: return StoreMode::Min;
    case ReduceKind::Any:
    case ReduceKind::All: return std::nullopt;
  }
  __builtin_unreachable();
}

std::optional<OperationLoops> of_reduction(const TileOp& op) {
  const Region &src = op.region(0), &dst = op.region(1);
  const ReduceKind kind = reduce_kind(op.op);
  const std::optional<StoreMode> mode = mode_of(kind);
  if (!mode) return std::nullopt;
  const DType acc = accumulator(dst.buffer->dtype);
  const std::vector<Expr> shape = src.shape();
  const size_t dim = *op.dimension(shape.size());
  OperationLoops out;
  if (*op.clears()) out.parts.push_back(filled(op, dst, identity_imm(kind, dst.buffer->dtype)));
  const std::vector<VarRef> vars = variables(shape.size());
  std::vector<Expr> from, to, extents;
  for (size_t d = 0, kept = 0; d < shape.size(); ++d) {
    from.emplace_back(d == dim ? vars.back() : vars[kept++]);
    if (d == dim) continue;
    to.push_back(from.back());
    extents.push_back(shape[d]);
  }
  extents.push_back(shape[dim]);
  if (dst.shape().size() == shape.size()) to.insert(to.begin() + static_cast<std::ptrdiff_t>(dim), int_imm(0));
  Expr value = cast(load(src.buffer, region_indices(src, from), op.span), acc, op.span);
  if (kind == ReduceKind::AbsMax) value = apply(Op::Abs, {value}, op.span);
  out.parts.push_back(part(vars, extents, update(dst.buffer, region_indices(dst, to), value, *mode, op.span), op.span));
  return out;
}

/// Are the elements inside of their buffer? Null where the operation demands it.
Expr inside(const TileOp& op, size_t i, const std::vector<Expr>& indices) {
  if (!op.may_pass_end(i)) return {};
  std::vector<Expr> all;
  for (size_t d = 0; d < indices.size(); ++d) all.push_back(less(indices[d], op.region(i).buffer->shape[d]));
  return all.empty() ? Expr() : chain(Op::And, all);
}

Stmt where(const Expr& one, const Expr& other, Stmt body) {
  const Expr both = one && other ? logical_and(one, other) : one ? one : other;
  return both ? if_then(both, std::move(body)) : body;
}

std::optional<OperationLoops> of_copy(const TileOp& op) {
  const std::optional<std::pair<Region, Region>> both = matched_regions(op.region(0), op.region(1));
  if (!both) return std::nullopt;
  const auto& [src, dst] = *both;
  const std::vector<Expr> extents = dst.shape();
  OperationLoops out;
  for (const bool pads : {false, true}) {
    const std::vector<VarRef> vars = variables(extents.size());
    const std::vector<Expr> from = region_indices(src, exprs(vars)), to = region_indices(dst, exprs(vars));
    const Expr readable = inside(op, 0, from), writable = inside(op, 1, to);
    if (pads && !readable) break;
    const Expr value =
        pads ? op.expr(op.row().index_of("pad")) : cast(load(src.buffer, from, op.span), dst.buffer->dtype, op.span);
    const Stmt body =
        where(writable, pads ? apply(Op::Not, {readable}) : readable, store(dst.buffer, to, value, op.span));
    out.parts.push_back(part(vars, extents, body, op.span));
    out.parts.back().pads = pads;
  }
  return out;
}

}  // namespace

std::optional<OperationLoops> operation_loops(const TileOp& op, bool swapped) {
  switch (op.op) {
    case TileOpcode::Copy: return of_copy(op);
    case TileOpcode::Fill: return OperationLoops{{filled(op, op.region(0), op.expr(1))}};
    case TileOpcode::Clear:
      return OperationLoops{{filled(op, op.region(0), number_imm(0, op.region(0).buffer->dtype))}};
    case TileOpcode::Gemm: return of_gemm(op, swapped);
    default: break;
  }
  if (op.row().rule == TileRule::Reduce) return of_reduction(op);
  return std::nullopt;
}

}  // namespace helve
