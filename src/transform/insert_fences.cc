// Proxy fences between what threads write and what TMA accesses.
// Input: the program of the threads of a block, with its barriers. Output: the same with T.fence_async before those
// barriers that separate a thread's write from a later access of the same memory by TMA (T.cp_async_bulk,
// T.cp_async_bulk_tensor), which TMA does not see otherwise; no fence is superfluous by the same check. Fences that the
// program has are replaced.
//
// Before:  for tx in T.threads(128):          After:  for tx in T.threads(128):
//              S[tx] = A[tx]                              S[tx] = A[tx]
//          T.sync_threads()                           T.fence_async()
//          T.cp_async_bulk(S, B, wait=True)           T.sync_threads()
//                                                     T.cp_async_bulk(S, B, wait=True)
#include "helve/analysis/barriers.h"
#include "helve/ir/tensor/equal.h"
#include "helve/ir/tensor/visit.h"
#include "helve/transform/passes.h"

namespace helve {

namespace {

Ref<const Kernel> without_fences(const Ref<const Kernel>& kernel) {
  const Stmt body = rewrite(kernel->body, [](const Stmt& s) {
    const TileOp* op = as<TileOp>(s);
    return op && op->op == TileOpcode::FenceAsync ? seq({}) : s;
  });
  return copy_with(*kernel, [&](Kernel& out) { out.body = body; });
}

}  // namespace

FunctionRef insert_fences(const FunctionRef& f, const PassOptions&) {
  return with_body(f, rewrite(f->body, [&](const Stmt& s) -> Stmt {
                     const Kernel* kernel = as<Kernel>(s);
                     if (!kernel) return s;
                     Ref<const Kernel> out(kernel);
                     const bool fenced =
                         has_operation(s, [](const TileOp& op) { return op.op == TileOpcode::FenceAsync; });
                     if (fenced) out = without_fences(out);
                     if (has_operation(s, [](const TileOp& op) { return op.in_async_proxy(); }))
                       out = with_fences(f, out);
                     return fenced && structural_equal(s, Stmt(out)) ? s : Stmt(out);
                   }));
}

}  // namespace helve
