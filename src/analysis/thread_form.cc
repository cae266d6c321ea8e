// A kernel with a loop over threads is in thread form.
// Such loops are neither nested nor mixed with loops that are still to be divided.
#include "helve/analysis/thread_form.h"

#include "helve/ir/tensor/visit.h"

namespace helve {

bool is_written_for_threads(const Kernel& kernel) {
  bool found = false;
  walk(kernel.body, [&](const Stmt& s) {
    const For* loop = as<For>(s);
    found |= loop && loop->loop == LoopKind::Thread;
  });
  return found;
}

}  // namespace helve
