// The sums of a scan.
// Small floats are added in float32 and rounded once.
#include "helve/dispatch/scan.h"

#include "element_nest.h"
#include "helve/dispatch/reduction.h"
#include "helve/ir/expr/number.h"

namespace helve {

Expr Scan::identity() const { return number_imm(0, acc); }

Expr Scan::element(const std::vector<Expr>& at) const { return partial(load(src.buffer, region_indices(src, at))); }

Stmt Scan::write(const std::vector<Expr>& at, const Expr& sum) const {
  return store(dst.buffer, region_indices(dst, at), cast(sum, dst.buffer->dtype));
}

Scan scan_of(const TileOp& op) {
  const Region& dst = op.region(1);
  const size_t dim = *op.dimension(dst.shape().size());
  return {op.region(0), dst, dim, op.flag(op.row().index_of("reverse")), accumulator(dst.buffer->dtype)};
}

}  // namespace helve
