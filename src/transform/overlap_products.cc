// Products of warpgroups that run while the program goes on.
// Input: the program of the threads of a block, whose products by T.wgmma are waited for at once. Output: the same with
// each wait in front of the first statement that touches the product's sums or writes its factors; a fence only where
// threads have accessed registers of the product. Barriers come later, so that they find the waits where they are.
//
// Before:  for k in T.serial(n):                     After:  T.wgmma_fence()
//              T.wgmma_fence()                               for k in T.serial(n):
//              T.wgmma(a[k % 3], b[k % 3], c)                    T.wgmma(a[k % 3], b[k % 3], c)
//              T.wgmma_commit()                                  T.wgmma_commit()
//              T.wgmma_wait()                                    T.wgmma_wait(1)
//              T.copy_async(A[k + 2], a[(k + 2) % 3])            T.copy_async(A[k + 2], a[(k + 2) % 3])
//          ... c ...                                         T.wgmma_wait(0)
//                                                            ... c ...
#include "helve/analysis/products_in_flight.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/transform/passes.h"

namespace helve {

FunctionRef overlap_products(const FunctionRef& f, const PassOptions&) {
  return with_body(f, rewrite(f->body, [&](const Stmt& s) -> Stmt {
                     const Kernel* kernel = as<Kernel>(s);
                     if (!kernel || !has_operation(s, [](const TileOp& op) { return op.begins_product(); })) return s;
                     const Ref<const Kernel> out = with_product_waits(Ref<const Kernel>(kernel));
                     HELVE_CHECK(early_uses(*out).empty(), "inserted waits for products do not suffice");
                     return Stmt(out);
                   }));
}

}  // namespace helve
