// The combination of a reduction.
// Small floats are combined in float32 and rounded once.
#include "helve/dispatch/reduction.h"

#include "element_nest.h"
#include "helve/support/diagnostic.h"

namespace helve {

Expr Reduction::identity() const {
  const ReduceKind from = kind == ReduceKind::AbsMax && !clear ? ReduceKind::Max : kind;
  return cast(identity_imm(from, dst.buffer->dtype), acc);
}

Expr Reduction::merge(const Expr& a, const Expr& b) const { return combine(kind, a, b); }

Expr Reduction::partial(const Expr& value) const {
  const Expr wide = cast(value, acc);
  return kind == ReduceKind::AbsMax ? apply(Op::Abs, {wide}) : wide;
}

Expr Reduction::element(const std::vector<Expr>& at) const {
  return partial(load(src.buffer, region_indices(src, at)));
}

std::vector<Expr> Reduction::place(const std::vector<Expr>& rest) const {
  std::vector<Expr> at = rest;
  const std::vector<Expr> shape = dst.shape();
  if (shape.size() == rest.size() + 1) at.insert(at.begin() + static_cast<std::ptrdiff_t>(dim), int_imm(0));
  return region_indices(dst, at);
}

Stmt Reduction::write(const std::vector<Expr>& rest, Expr value) const {
  const std::vector<Expr> at = place(rest);
  if (!clear) value = merge(cast(load(dst.buffer, at), acc), value);
  return store(dst.buffer, at, cast(value, dst.buffer->dtype));
}

Reduction reduction_of(const TileOp& op) {
  Reduction r{reduce_kind(op.op), op.region(0), op.region(1), 0, *op.clears(), accumulator(op.region(1).buffer->dtype)};
  r.dim = *op.dimension(r.src.shape().size());
  return r;
}

}  // namespace helve
