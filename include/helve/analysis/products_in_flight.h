// Products of warpgroups that are unfinished while the program goes on.
// The pass that places fences and waits and the check that they suffice share one abstract execution.
#pragma once

#include <string>
#include <vector>

#include "helve/ir/tensor/function.h"

namespace helve {

/// A statement that comes too early: it touches what a product in flight reads or writes, or it is a product whose
/// registers threads have accessed without a T.wgmma_fence since.
struct EarlyUse {
  BufferRef buffer;
  Stmt product;
  Stmt use;  ///< the product itself where a fence is missing
};

/// The statements of a kernel in thread form that come too early, in program order. A product is in flight from its
/// T.wgmma to a T.wgmma_wait that leaves fewer groups unfinished than were committed since. Until then nothing may
/// access its sums, but products of the same instruction that add to them in order, and nothing may write its factors.
/// Two places of a factor's buffer are told apart by the exact engine, also across the iterations of a loop; what is
/// not known to be apart meets.
std::vector<EarlyUse> early_uses(const Kernel& kernel);

/// The kernel with a T.wgmma_fence before each product that needs one, in front of a loop where its products need no
/// other, a T.wgmma_commit after each product, and a
/// T.wgmma_wait before the first statement that touches what it reads or writes, which leaves as many younger groups
/// unfinished as there are. Those that it has are replaced. No more than one group is in flight from one iteration of a
/// loop to the next, and none where what it uses ceases to exist.
Ref<const Kernel> with_product_waits(const Ref<const Kernel>& kernel);

}  // namespace helve
