// Barriers between threads that touch one element.
// Input: the program of the threads of a block without the barriers that it needs. Output: the same with T.sync_threads
// wherever two accesses of an element by different threads, one a write, would not be ordered; none whose removal the
// check accepts. Before:  for tx in T.threads(128): S[tx] = A[tx]              After:  for tx in T.threads(128): S[tx]
// = A[tx]
//          for tx in T.threads(128): B[tx] = S[127 - tx]                T.sync_threads()
//                                                                       for tx in T.threads(128): B[tx] = S[127 - tx]
#include "helve/analysis/barriers.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/transform/passes.h"

namespace helve {

FunctionRef insert_barriers(const FunctionRef& f, const PassOptions&) {
  BarrierAnalysis analysis(f);
  return with_body(f, rewrite(f->body, [&](const Stmt& s) -> Stmt {
                     const Kernel* kernel = as<Kernel>(s);
                     if (!kernel) return s;
                     const Ref<const Kernel> ordered = analysis.with_barriers(Ref<const Kernel>(kernel));
                     HELVE_CHECK(analysis.unordered(*ordered).empty(), "inserted barriers do not suffice");
                     return Stmt(ordered);
                   }));
}

}  // namespace helve
