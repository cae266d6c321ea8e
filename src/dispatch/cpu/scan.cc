// Scans on the CPU.
// Along the scanned dimension sums are sequential; across it the lines are independent and run side by side.
#include "helve/dispatch/scan.h"

#include "element_nest.h"
#include "schedules.h"

namespace helve::cpu {

namespace {

std::vector<NestDim> across(const Scan& scan) {
  std::vector<NestDim> dims = nest_dims(scan.src, scan.src.shape());
  dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(scan.dim));
  return dims;
}

/// One step along the scanned dimension: adds an element to `sum` and writes the result.
Stmt step(const Scan& scan, const std::vector<Expr>& rest, const BufferRef& sum, const std::vector<Expr>& place,
          const VarRef& k) {
  const Expr last = scan.src.shape()[scan.dim] - int_imm(1);
  std::vector<Expr> at = rest;
  at.insert(at.begin() + static_cast<std::ptrdiff_t>(scan.dim), scan.reverse ? last - Expr(k) : Expr(k));
  return seq({store(sum, place, load(sum, place) + scan.element(at)), scan.write(at, load(sum, place))});
}

}  // namespace

Stmt lower_scan_columns(const TileOp& op, const LoweringContext&, std::string* declined) {
  const Scan scan = scan_of(op);
  std::vector<Expr> extents = scan.src.shape();
  if (scan.dim + 1 == extents.size()) {
    *declined = "the scanned dimension is the last";
    return {};
  }
  const Expr along = extents[scan.dim];
  extents.erase(extents.begin() + static_cast<std::ptrdiff_t>(scan.dim));
  if (!constant_shape(extents)) {
    *declined = "the extents across the scan are not constant";
    return {};
  }
  const BufferRef sum = make_buffer("sum", scan.acc, MemoryScope::Local, extents);
  const VarRef k = make_var("k");
  const Stmt start =
      element_nest(across(scan), [&](const std::vector<Expr>& at) { return store(sum, at, scan.identity()); });
  const Stmt next = element_nest(across(scan), [&](const std::vector<Expr>& at) { return step(scan, at, sum, at, k); });
  return seq({alloc(sum), start, for_loop(LoopKind::Serial, k, along, next)});
}

Stmt lower_scan_elements(const TileOp& op, const LoweringContext&, std::string*) {
  const Scan scan = scan_of(op);
  return element_nest(across(scan), [&](const std::vector<Expr>& rest) {
    const BufferRef sum = make_buffer("sum", scan.acc, MemoryScope::Local, {int_imm(1)});
    const std::vector<Expr> only = {int_imm(0)};
    const VarRef k = make_var("k");
    return seq({alloc(sum), store(sum, only, scan.identity()),
                for_loop(LoopKind::Serial, k, scan.src.shape()[scan.dim], step(scan, rest, sum, only, k))});
  });
}

}  // namespace helve::cpu
