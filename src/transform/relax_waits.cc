// Waits for stores by TMA that end when the sources have been read.
// Input: the program of the threads of a block, with its barriers. Output: the same with sources=True for the waits of
// kernels that store by TMA and do not access what it has written: the memory of a source is used again earlier, and
// the data arrive before the kernel ends.
//
// Before:  for k in T.serial(n):              After:  for k in T.serial(n):
//              ...                                        ...
//              T.cp_async_bulk(S, B[k, :])                T.cp_async_bulk(S, B[k, :])
//              T.wait_async()                             T.wait_async(sources=True)
#include "helve/analysis/stored_results.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

bool stores_by_tma(const Stmt& body) {
  return has_operation(body, [](const TileOp& op) { return op.is_by_tma() && is_global(*op.region(1).buffer); });
}

/// The operation with sources=True, if it waits for stores.
Stmt relaxed(const Stmt& s) {
  const TileOp* op = as<TileOp>(s);
  if (!op) return s;
  const bool waits = op->op == TileOpcode::WaitAsync || op->op == TileOpcode::WaitBulk ||
                     (op->is_by_tma() && !op->begins_copy() && is_global(*op->region(1).buffer));
  if (!waits) return s;
  const size_t sources = op->row().index_of("sources");
  if (op->flag(sources)) return s;
  return Stmt(copy_with(*op, [&](TileOp& out) { out.operands[sources] = true; }));
}

}  // namespace

FunctionRef relax_waits(const FunctionRef& f, const PassOptions&) {
  return with_body(f, rewrite(f->body, [&](const Stmt& s) -> Stmt {
                     const Kernel* kernel = as<Kernel>(s);
                     if (!kernel || !stores_by_tma(kernel->body) || accesses_stored_results(f, *kernel)) return s;
                     const Stmt body = rewrite(kernel->body, relaxed);
                     if (body == kernel->body) return s;
                     return Stmt(copy_with(*kernel, [&](Kernel& out) { out.body = body; }));
                   }));
}

}  // namespace helve
