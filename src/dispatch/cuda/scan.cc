// Scans on a GPU: they are kept if the threads can hold all elements.
// A kept scan is divided with the loops around it; else one thread scans each line.
#include "helve/dispatch/scan.h"

#include <algorithm>

#include "over_elements.h"
#include "schedules.h"

namespace helve {

/// Keeps the scan if the threads can hold all elements: it is then divided with the loops around it. Else one thread
/// scans each line.
Stmt cuda::lower_scan(const TileOp& op, const LoweringContext& context, std::string*) {
  constexpr int64_t kMaxRegisters = 64;
  const int64_t threads = context.kernel->threads;
  const Scan scan = scan_of(op);
  std::vector<Expr> across = scan.src.shape();
  int64_t left = std::min(kMaxRegisters, context.machine->value_registers(threads) / 2) * threads;
  for (const Expr& e : across) {
    const int64_t* extent = int_value(e);
    left = extent ? left / std::max<int64_t>(*extent, 1) : 0;
  }
  if (left > 0) return Stmt(make_ref<TileOp>(op));
  const Expr along = across[scan.dim];
  across.erase(across.begin() + static_cast<std::ptrdiff_t>(scan.dim));
  return over_elements(across, *context.facts, [&](const std::vector<Expr>& rest, const Facts&) {
    const BufferRef sum = make_buffer("sum", scan.acc, MemoryScope::Local, {int_imm(1)});
    const std::vector<Expr> only = {int_imm(0)};
    const VarRef k = make_var("k");
    std::vector<Expr> at = rest;
    at.insert(at.begin() + static_cast<std::ptrdiff_t>(scan.dim),
              scan.reverse ? along - int_imm(1) - Expr(k) : Expr(k));
    return seq(
        {alloc(sum), store(sum, only, scan.identity()),
         for_loop(LoopKind::Serial, k, along,
                  seq({store(sum, only, load(sum, only) + scan.element(at)), scan.write(at, load(sum, only))}))});
  });
}

}  // namespace helve
