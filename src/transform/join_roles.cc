// The roles of a kernel become one sequential program again.
// Input: any function; kernels in their last form have roles. Output: the same without roles: the second role's
// statements stand where the first takes what they fill. So every pass, and every target without rings, sees one
// sequential program, and split_roles makes the same roles of it. Roles that are no two slices of one program are
// refused, since nothing orders them, and so are rings that are not in order (analysis/rings.h).
// Before:  with T.role(0, 256):                       After:  for k in T.serial(n):
//              for k in T.serial(n):                              T.ring_acquire(ring)
//                  T.ring_wait(ring)                              T.cp_async_bulk_tensor(A[k, :], x, barriers=ring)
//                  ... x ...                                      T.ring_commit(ring)
//                  T.ring_release(ring)                           T.ring_wait(ring)
//          with T.role(256, 128, elect=True):                     ... x ...
//              for k in T.serial(n):                              T.ring_release(ring)
//                  T.ring_acquire(ring)
//                  T.cp_async_bulk_tensor(A[k, :], x, barriers=ring)
//                  T.ring_commit(ring)
#include "helve/analysis/rings.h"
#include "helve/ir/tensor/ring.h"
#include "helve/ir/tensor/visit.h"
#include "helve/support/diagnostic.h"
#include "helve/transform/passes.h"

namespace helve {

FunctionRef join_roles(const FunctionRef& f, const PassOptions&) {
  return with_body(f, rewrite(f->body, [&](const Stmt& s) -> Stmt {
                     const Kernel* kernel = as<Kernel>(s);
                     if (!kernel || (!has_roles(*kernel) && rings_of(s).empty())) return s;
                     const Ref<const Kernel> given(kernel);
                     if (const std::optional<RingFault> fault = ring_fault(*f, given)) {
                       throw UserError(Code::RolesOutOfStep, fault->span, {{"reason", fault->reason}},
                                       {{kernel->span, "the kernel"}});
                     }
                     if (!has_roles(*kernel)) return s;
                     RingFault none;
                     return Stmt(*joined_roles(given, &none));
                   }));
}

}  // namespace helve
